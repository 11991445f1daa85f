"""Where steps are computed: one seam, and an implementation for each way of computing."""

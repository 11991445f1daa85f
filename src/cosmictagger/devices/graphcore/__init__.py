"""The IPU, using only PopTorch's and PopDist's documented interfaces."""

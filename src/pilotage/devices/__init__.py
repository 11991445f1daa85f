"""The kinds of devices, and the choice between them."""

"""The IPU, through nothing but PopTorch's and PopDist's documented interfaces."""

"""What PopTorch refuses or warns about in a model that it compiles."""

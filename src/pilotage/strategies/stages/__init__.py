"""A program as a pipeline of stages."""

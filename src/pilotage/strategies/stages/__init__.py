"""A program as a pipeline of stages, with two transports: cards of one process, and processes of one instance."""

"""What happens while the forward of a model is compiled."""

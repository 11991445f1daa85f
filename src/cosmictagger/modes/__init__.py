"""What a run does: train, iotest, inference, visualize."""

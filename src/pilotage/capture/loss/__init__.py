"""Finding the loss that the backward pass starts from."""

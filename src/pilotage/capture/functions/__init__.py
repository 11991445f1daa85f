"""Functions of torch that need care during capture."""

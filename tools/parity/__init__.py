"""What of PopTorch's public interface is here: the rows of the parity page, and the page."""

"""The version of PopTorch whose interface this is."""

__all__ = ["__version__"]

__version__ = "3.4.0"

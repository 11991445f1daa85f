"""Parts of the data loader."""

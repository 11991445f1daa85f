"""Everything needed to resume training, in a folder of files."""

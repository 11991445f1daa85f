"""Parts of the drop-ins that are not under a vendor's import name."""

"""Devices, one for each compute mode, and the executors that train and evaluate on them."""

"""The version of Pilotage, and the versions of torch that it works with."""

VERSION = "0.1.0"

OLDEST_TORCH, FIRST_UNTESTED_TORCH = (2, 11), (2, 14)
TORCH_RANGE = "torch>={}.{},<{}.{}".format(*OLDEST_TORCH, *FIRST_UNTESTED_TORCH)

"""Where modules that were pickled whole by earlier versions look for their blocks."""

from poptorch.ops.blocks import Block as Block
from poptorch.ops.blocks import LegacyBeginBlockFn as LegacyBeginBlockFn
from poptorch.ops.blocks import _BlockStart as _BlockStart

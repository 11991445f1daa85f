"""Names that modules pickled by earlier versions refer to; the blocks are in `poptorch.ops.blocks`."""

from poptorch.ops.blocks import Block as Block
from poptorch.ops.blocks import LegacyBeginBlockFn as LegacyBeginBlockFn
from poptorch.ops.blocks import _BlockStart as _BlockStart

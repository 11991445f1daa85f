"""Operations and annotations that PopTorch adds to torch's."""

from __future__ import annotations

from poptorch.ops.annotations import Attribute, NameScope
from poptorch.ops.beam_search import ctc_beam_search_decoder
from poptorch.ops.blocks import BeginBlock, Block, BlockFunction, LegacyBeginBlockFn, removeBlocks
from poptorch.ops.control_flow import cond, for_loop
from poptorch.ops.custom import custom_op, implementCustomOp
from poptorch.ops.host import CPU
from poptorch.ops.identities import (
    identity_loss,
    nop,
    recomputationCheckpoint,
    serializedMatMul,
    set_available_memory,
)
from poptorch.ops.multi_conv import MultiConv
from poptorch.ops.overlap import set_overlap_for_input, set_overlap_for_output
from poptorch.ops.points import fps, nearest
from poptorch.ops.printing import ipu_print_tensor
from poptorch.ops.slicing import dynamic_slice, dynamic_update

from poptorch.ops import registered as registered  # isort: skip

__all__ = [
    "CPU",
    "Attribute",
    "BeginBlock",
    "Block",
    "BlockFunction",
    "LegacyBeginBlockFn",
    "MultiConv",
    "NameScope",
    "cond",
    "ctc_beam_search_decoder",
    "custom_op",
    "dynamic_slice",
    "dynamic_update",
    "for_loop",
    "fps",
    "identity_loss",
    "implementCustomOp",
    "ipu_print_tensor",
    "nearest",
    "nop",
    "recomputationCheckpoint",
    "removeBlocks",
    "serializedMatMul",
    "set_available_memory",
    "set_overlap_for_input",
    "set_overlap_for_output",
]

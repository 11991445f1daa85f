import gc
import weakref

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from poptorch._capture.capturing import current_capture, current_run
from poptorch.ops.blocks import Block
from poptorch.options import Options

BATCH = torch.ones(2, 3)


class Model(nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.run = forward

    def forward(self, x):
        return self.run(x)


def test_a_compilation_is_visible_only_while_forward_runs(compiled):
    seen = []

    def forward(x):
        seen.append((current_capture(), current_run()))
        return x + 1

    model = Model(forward)
    run = compiled(model)
    run(BATCH)
    assert len(seen) == 1
    assert seen[0][0] is run.capture
    assert seen[0][1] is not None
    assert (current_capture(), current_run(), run.capture.run) == (None, None, None)
    assert not model._forward_pre_hooks
    assert not model._forward_hooks
    model(BATCH)
    assert seen[1] == (None, None)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failing_forward_leaves_torch_unchanged(compiled, error):
    def forward(x):
        raise error("mine")

    model = Model(forward)
    with pytest.raises(error, match="mine"):
        compiled(model)(BATCH)
    assert not _get_current_dispatch_mode_stack()
    assert not model._forward_pre_hooks
    assert current_capture() is None


def test_a_recursive_forward_counts_as_one_run(compiled):
    class Twice(nn.Module):
        def forward(self, x, again=True):
            with Block("a", ipu_id=0):
                return self(x, again=False) if again else x + 1

    run = compiled(Twice())
    assert torch.equal(run(BATCH), BATCH + 1)
    assert [visit.block_id for visit in run.capture.visits] == ["a", "a"]


def test_a_compilation_does_not_keep_the_tensors_of_forward(compiled):
    seen = []

    def forward(x):
        seen.append(weakref.ref(x))
        return x + 1

    run = compiled(Model(forward))
    run.compile(BATCH)
    gc.collect()
    assert run.capture is not None
    assert seen[0]() is None


def test_a_second_attempt_of_the_engine_starts_from_scratch(compiled):
    # Reentrant checkpoints make the engine capture forward twice.
    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            with Block("a", ipu_id=0):
                x = torch.utils.checkpoint.checkpoint(self.layer, self.layer(x), use_reentrant=True)
                return nn.functional.mse_loss(x, torch.zeros_like(x))

    run = compiled(Checkpointed(), Options(), training=True)
    run(BATCH)
    assert len(run.capture.visits) == 1

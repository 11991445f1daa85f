import copy
import gc
import weakref

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

import poptorch
from poptorch._capture.capturing import capturing, current_capture, current_run
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


class Interrupted(nn.Module):
    """Somebody presses Ctrl-C in one of its runs."""

    runs = 0

    def __init__(self, last):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(3, 3), nn.BatchNorm1d(3), last

    def forward(self, x):
        Interrupted.runs += 1
        y = self.norm(self.first(x))
        if Interrupted.runs == self.last:
            raise KeyboardInterrupt
        return nn.functional.mse_loss(y, torch.zeros_like(y))


@pytest.mark.parametrize("last", [1, 2], ids=["capture", "arrival check"])
def test_an_interrupt_in_a_submodule_leaves_torch_unchanged(last):
    def numbers():
        torch.manual_seed(3)
        return nn.Linear(2, 2).weight.tolist()

    expected = numbers()
    Interrupted.runs = 0
    options = Options().check("first").runOn("cpu")
    options.showCompilationProgressBar(False)
    model = Interrupted(last)
    wrapped = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.1))
    batch = torch.randn(4, 3)
    with pytest.raises(KeyboardInterrupt):
        wrapped(batch)
    assert not _get_current_dispatch_mode_stack()
    assert torch._C._len_torch_function_stack() == 0
    assert numbers() == expected
    assert (current_capture(), current_run()) == (None, None)
    assert wrapped(batch).isfinite()


def test_the_hooks_of_a_copied_module_do_nothing():
    runs = []
    model = Model(lambda x: runs.append(current_run()) or x)
    with capturing(model, Options(), training=False) as capture:
        twin = copy.deepcopy(model)
        twin(BATCH)
        assert runs == [None]
        model(BATCH)
        assert runs[1] is not None
    with capture.repeating(twin):
        twin(BATCH)
    assert runs[2] is not None

import pytest
import torch

import poptorch
from poptorch.poptorch_core import Error

MODE = poptorch.OverlapMode.OverlapAccumulationLoop
X = torch.ones(2, 3)


def options(*, sharded=True, tiles=True, mode=poptorch.OutputMode.All):
    made = poptorch.Options().outputMode(mode)
    if sharded:
        made.setExecutionStrategy(poptorch.ShardedExecution())
    if tiles:
        made.TensorLocations.numIOTiles(64)
    return made


def overlapped(x):
    x = poptorch.set_overlap_for_input(x, MODE)
    return poptorch.set_overlap_for_output(x * 2, poptorch.OverlapMode.OverlapDeviceIterationLoop)


def test_overlap_does_not_change_results(compiled, tier):
    assert torch.equal(compiled(overlapped, options(), tier=tier)(X), X * 2)
    assert torch.equal(overlapped(X), X * 2)


def test_structures_keep_their_shape(compiled):
    def forward(x, y):
        given = poptorch.set_overlap_for_input({"x": x, "rest": (y, 3)}, MODE)
        assert given["rest"][1] == 3
        return poptorch.set_overlap_for_output([given["x"] + 1, (given["rest"][0] + 2,)], MODE)

    first, (second,) = compiled(forward, options())(X, X)
    assert torch.equal(first, X + 1)
    assert torch.equal(second, X + 2)


@pytest.mark.parametrize("forward", [overlapped, lambda x: poptorch.set_overlap_for_output(x + 1, MODE)])
@pytest.mark.parametrize(
    ("made", "words"),
    [(options(sharded=False), r"needs poptorch\.ShardedExecution"), (options(tiles=False), "No IO tiles allocated")],
    ids=["pipelined", "no tiles"],
)
def test_the_requirements_of_an_overlap_are_checked(compiled, forward, made, words, tier):
    with pytest.raises(Error, match=words):
        compiled(forward, made, tier=tier)(X)


@pytest.mark.parametrize("mode", [poptorch.OutputMode.Final, poptorch.OutputMode.EveryN])
def test_outputs_overlap_only_if_all_are_returned_or_summed(compiled, mode):
    made = options().outputMode(mode, 1) if mode is poptorch.OutputMode.EveryN else options(mode=mode)
    with pytest.raises(Error, match=rf"OutputMode\.All or OutputMode\.Sum. It is OutputMode\.{mode.name}"):
        compiled(overlapped, made)(X)


@pytest.mark.parametrize("forward", [lambda x: x + overlapped(x), lambda x: overlapped(x) + (x * 1)])
def test_overlap_must_be_the_only_operation_on_an_input(compiled, forward):
    with pytest.raises(Error, match="is not the only operation applied to an input"):
        compiled(forward, options())(X)


def test_overlap_applies_only_to_inputs(compiled):
    with pytest.raises(Error, match="not a tensor input"):
        compiled(lambda x: overlapped(x + 1), options())(X)


def test_overlap_of_outputs_applies_only_to_what_is_returned(compiled):
    with pytest.raises(
        Error, match="set_overlap_for_output applied on a node which is not a tensor output to the model"
    ):
        compiled(lambda x: poptorch.set_overlap_for_output(x + 1, MODE) * 2, options())(X)
    assert torch.equal(compiled(lambda x: [poptorch.set_overlap_for_output(x + 1, MODE)], options())(X)[0], X + 1)


def test_no_overlap_has_no_requirements(compiled):
    mode = poptorch.OverlapMode.NoOverlap

    def forward(x):
        return poptorch.set_overlap_for_output(poptorch.set_overlap_for_input(x + 1, mode), mode)

    assert torch.equal(compiled(forward)(X), X + 1)


@pytest.mark.parametrize("operation", [poptorch.set_overlap_for_input, poptorch.set_overlap_for_output])
def test_a_mode_of_another_type_is_refused(operation):
    with pytest.raises(AssertionError, match=r"takes a poptorch\.OverlapMode"):
        operation(X, "no_overlap")

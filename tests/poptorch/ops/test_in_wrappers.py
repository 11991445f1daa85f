"""Blocks and ops in whole programs: with trainingModel, inferenceModel and files."""

import gc

import pytest
import torch
from torch import nn

import poptorch

pytestmark = pytest.mark.slow

X = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))


class Encoder(nn.Module):
    """Four layers in two pipeline stages, with a loss in the last."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
        poptorch.BeginBlock(self.layers[0], "first", ipu_id=0)
        poptorch.BeginBlock(self.layers[2], "second", ipu_id=1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(poptorch.recomputationCheckpoint(layer(x)))
        return x, poptorch.identity_loss(x.square(), "mean")


def quiet():
    return poptorch.Options().runOn("cpu").showCompilationProgressBar(False)


def pipelined():
    options = quiet()
    options.Training.gradientAccumulation(3)
    return options


def test_a_pipelined_model_trains_as_the_same_model_without_blocks():
    in_blocks, plain = Encoder(), Encoder()
    plain.load_state_dict(in_blocks.state_dict())
    poptorch.removeBlocks(plain)
    models = [in_blocks, plain]
    wrappers = [
        poptorch.trainingModel(model, pipelined(), poptorch.optim.SGD(model.parameters(), lr=0.1)) for model in models
    ]
    for _ in range(3):
        losses = [wrapper(X)[1] for wrapper in wrappers]
        assert torch.equal(*losses)
    assert all(map(torch.equal, in_blocks.parameters(), plain.parameters()))


def test_a_pipeline_that_is_too_deep_is_refused_and_can_be_corrected():
    model = Encoder()
    wrapper = poptorch.inferenceModel(model, quiet())
    with pytest.raises(poptorch.Error, match="deviceIterations must be greater"):
        wrapper(X)
    assert not wrapper.isCompiled()
    outputs, _ = poptorch.inferenceModel(model, quiet().deviceIterations(2))(X)
    assert torch.allclose(outputs, model(X)[0])


def test_a_wrapped_model_shows_its_blocks():
    assert "(0): BeginBlock(user_id=first, ipu_id=0) Linear" in repr(poptorch.inferenceModel(Encoder(), quiet()))


class Printed(nn.Module):
    def forward(self, x):
        return poptorch.ipu_print_tensor(x.sum(), "sum") + 1


def test_a_loaded_model_prints_as_before(tmp_path, capfd):
    wrapper = poptorch.inferenceModel(Printed(), quiet())
    wrapper.compileAndExport(str(tmp_path / "model.poptorch"), torch.ones(3))
    capfd.readouterr()
    loaded = poptorch.load(str(tmp_path / "model.poptorch"))
    loaded(torch.full((3,), 2.0))
    assert "sum: 6.0000" in capfd.readouterr().err


class OnHost(nn.Module):
    def __init__(self):
        super().__init__()
        self.on_host = poptorch.CPU(lambda x: x * 2, "double")

    def forward(self, x):
        return self.on_host(x) + 1


def test_a_host_function_cannot_be_loaded_from_a_file(tmp_path):
    wrapper = poptorch.inferenceModel(OnHost(), quiet())
    assert torch.equal(wrapper(X), 2 * X + 1)
    wrapper.save(str(tmp_path / "model.poptorch"))
    wrapper.destroy()
    del wrapper
    gc.collect()
    with pytest.raises(poptorch.Error, match="poptorch::call_on_host, which a file may not do by default"):
        poptorch.load(str(tmp_path / "model.poptorch"))
    with pytest.raises(poptorch.Error, match="host function 'double', which is not available"):
        poptorch.load(str(tmp_path / "model.poptorch"), allow_operations=["poptorch::call_on_host"])(X)


@pytest.mark.parametrize("name", ["print_tensor", "call_on_host", "ctc_beam_search"])
def test_operations_that_need_the_host_are_tagged_as_unsafe_for_cuda_graphs(name):
    assert torch.Tag.cudagraph_unsafe in getattr(torch.ops.poptorch, name).default.tags

import pytest
import torch
from torch import nn

from poptorch import _impl
from poptorch.poptorch_core import Error


def test_the_model_knows_whether_its_wrapper_runs_it(compiled, tier):
    answers = []

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            answers.append(_impl.isRunningOnIpu())

        def forward(self, x):
            answers.append(_impl.isRunningOnIpu())
            return x + 1 if _impl.isRunningOnIpu() else x - 1

    model = Model()
    x = torch.ones(1)
    assert torch.equal(compiled(model, tier=tier)(x), x + 1)
    assert torch.equal(model(x), x - 1)
    assert answers == [False, True, False]
    assert not _impl.isRunningOnIpu()


@pytest.mark.parametrize("variable", [None, "POPTORCH_IPU_MODEL", "POPTORCH_SMALL_IPU_MODEL"])
def test_there_is_no_ipu_hardware(monkeypatch, variable):
    if variable:
        monkeypatch.setenv(variable, "1")
    assert _impl.ipuHardwareIsAvailable() is False
    assert _impl.ipuHardwareIsAvailable(num_ipus=16) is False
    with pytest.raises(AssertionError, match="No IPU hardware available"):
        _impl.ipuHardwareVersion()


def test_each_tensor_of_a_compilation_has_a_unique_id(compiled):
    ids = []

    class Model(nn.Module):
        def forward(self, x):
            y = x + 1
            ids.extend(map(_impl.getIpuTensorId, (x, y, x)))
            return y

    compiled(Model())(torch.ones(1))
    assert ids[0] == ids[2] != ids[1]


@pytest.mark.parametrize("value", [torch.ones(1), 3])
def test_other_tensors_have_no_id(value):
    with pytest.raises(Error, match="getIpuTensorId"):
        _impl.getIpuTensorId(value)


def test_unsupported_functions_name_their_replacement():
    with pytest.raises(Error, match="implementCustomOp"):
        _impl.accessAttributes("7")
    with pytest.raises(Error, match=r"poptorch\.load"):
        _impl.importPoptorchMetadataFromFile("model.poptorch")


def test_the_exit_function_does_nothing():
    assert _impl.poptorchAtExit() is None


def test_an_error_of_the_python_layer_is_returned():
    error = _impl.createPoptorchError("something")
    assert (str(error), error.type) == ("'poptorch_py_error': something", "poptorch_py_error")


def test_pickled_objects_name_a_function_that_returns_them():
    module = nn.Linear(1, 1)
    assert _impl._restoreWrapperIfNecessary(module) is module

import os
import subprocess
import sys

import pytest

from poptorch.options import Options


def processes(options):
    return options.Distributed.processId, options.Distributed.numProcesses


def test_there_is_one_process_by_default(monkeypatch):
    monkeypatch.delenv("OMPI_COMM_WORLD_SIZE", raising=False)
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)
    assert processes(Options()) == (0, 1)
    assert Options().Distributed.toDict() == {
        "num_distributed_processes": 1,
        "distributed_process_id": 0,
        "ipuof_configs": {},
    }


@pytest.fixture
def launched(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "2")


@pytest.mark.usefixtures("launched")
def test_the_process_id_is_read_from_open_mpi():
    assert processes(Options()) == (2, 4)


@pytest.mark.usefixtures("launched")
def test_the_environment_is_ignored_on_request():
    options = Options()
    assert options.Distributed.disable() is options.Distributed
    assert processes(options) == (0, 1)


def test_the_process_id_can_be_read_from_other_variables(monkeypatch):
    monkeypatch.setenv("WORLD", "8")
    monkeypatch.setenv("ME", "5")
    options = Options()
    options.Distributed.setEnvVarNames("WORLD", "ME")
    assert processes(options) == (5, 8)
    options.Distributed.setEnvVarNames("NO_SUCH_VARIABLE", "NOR_THIS_ONE")
    assert processes(options) == (0, 1)


def test_the_process_id_can_be_set():
    options = Options()
    options.Distributed.configureProcessId(3, 4)
    assert processes(options) == (3, 4)
    with pytest.raises(AssertionError, match="Unexpected type"):
        options.Distributed.configureProcessId("3", 4)


def test_a_variable_that_is_not_a_number_is_named(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "many")
    with pytest.raises(ValueError, match="OMPI_COMM_WORLD_SIZE is 'many'"):
        Options()


SCRIPT = """
import sys
import poptorch, torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.zeros_(self.layer.weight)

    def forward(self, x, y):
        output = self.layer(x)
        return output, torch.nn.functional.l1_loss(output, y)

options = poptorch.Options().runOn("cpu", tier="graph").showCompilationProgressBar(False)
model = Model()
wrapped = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.5))
wrapped(torch.full((2, 1), 1.0 + 2 * options.Distributed.processId), torch.full((2, 1), 100.0))
print(options.Distributed.processId, options.Distributed.numProcesses, model.layer.weight.item())
"""


@pytest.mark.slow
def test_processes_that_find_mpis_variables_train_together(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    shared = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": str(tmp_path)}
    processes = [
        subprocess.Popen(
            [sys.executable, script],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | shared | {"OMPI_COMM_WORLD_RANK": str(rank), "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=100)[0].split() for process in processes]
    assert said == [["0", "2", "1.0"], ["1", "2", "1.0"]]

"""The core where there is no /proc, as on systems other than Linux."""

import subprocess
import sys

import pytest

HIDE_PROC = """
import builtins, io, os, pathlib

def hidden(call):
    def asked(*arguments, **settings):
        path = arguments[0] if arguments else settings.get("file", settings.get("path", "."))
        if isinstance(path, (str, bytes, os.PathLike)) and os.fsdecode(path).startswith("/proc"):
            raise FileNotFoundError(2, "hidden", os.fsdecode(path))
        return call(*arguments, **settings)
    return asked

builtins.open = io.open = hidden(open)
for name in ("stat", "lstat", "readlink", "listdir", "scandir", "access"):
    setattr(os, name, hidden(getattr(os, name)))
assert not pathlib.Path("/proc/self").exists()
"""

TRAIN = """
import torch, pilotage
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = pilotage.training(model, optimizer, loss=torch.nn.CrossEntropyLoss(), backend="cpu")
inputs, labels = torch.randn(8, 4), torch.randint(2, (8,))
losses = [float(step(inputs, labels)[1]) for _ in range(5)]
assert losses[-1] < losses[0]
"""


def run(program: str) -> None:
    ran = subprocess.run([sys.executable, "-c", HIDE_PROC + program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_pilotage_and_its_command_line_are_imported():
    run("import pilotage.cli.main; pilotage.cli.main.main([])")


@pytest.mark.slow
def test_a_model_is_trained():
    run(TRAIN)


@pytest.mark.slow
def test_the_doctor_and_the_monitor_answer():
    run("from pilotage.cli.main import main; assert main(['monitor', '--json']) == 0; main(['doctor'])")

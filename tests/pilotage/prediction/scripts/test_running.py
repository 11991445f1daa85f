import pytest

from pilotage.errors import PredictionError
from pilotage.prediction.prediction import Traced
from pilotage.prediction.scripts.running import find
from pilotage.prediction.subject import Subject
from pilotage.torch_private import FakeTensor

MODEL = """
import sys, torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rates = [each.item() for each in torch.linspace(0, 0.1, 4)]
        self.wide = nn.Linear(64, 512)
        self.narrow = nn.Linear(512, 4)

    def forward(self, x, y=None):
        scores = self.narrow(torch.relu(self.wide(x)))
        return scores if y is None else (scores, nn.functional.cross_entropy(scores, y))

size = int(sys.argv[1]) if len(sys.argv) > 1 else 8
data = torch.utils.data.TensorDataset(torch.randn(64, 64), torch.randint(0, 4, (64,)))
"""
POPTORCH = (
    MODEL
    + """
import poptorch

model = Net()
options = poptorch.Options().deviceIterations(2)
loader = poptorch.DataLoader(options, data, batch_size=size, shuffle=True)
train = poptorch.trainingModel(model, options, poptorch.optim.AdamW(model.parameters(), lr=0.1))
for x, y in loader:
    train(x, y)
raise AssertionError("the script went on")
"""
)
PILOTAGE = (
    MODEL
    + """
import pilotage

model = Net().to(torch.bfloat16)
train = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1))
try:
    train(torch.randn(size, 64, dtype=torch.bfloat16), torch.zeros(size, dtype=torch.long))
except Exception:
    pass
raise AssertionError("the script went on")
"""
)
PLAIN = (
    MODEL
    + """
model = Net()
model.to("cpu")
optimizer = torch.optim.Adam(model.parameters())
losses = []
for x, y in torch.utils.data.DataLoader(data, batch_size=size, shuffle=True):
    optimizer.zero_grad()
    _, loss = model(x, y)
    losses.append(loss.item())
    loss.backward()
    optimizer.step()
raise AssertionError("the script went on")
"""
)


@pytest.fixture
def found(tmp_path):
    def run(text, *arguments):
        path = tmp_path / "script.py"
        path.write_text(text)
        return find(str(path), arguments)

    return run


def test_a_poptorch_script_ends_at_its_first_call(found):
    subject = found(POPTORCH, "4").what
    assert isinstance(subject, Subject)
    assert (subject.name, subject.samples) == ("script.py", 4)
    assert subject.execution.batching.device_iterations == 2
    assert subject.plan is not None
    assert subject.loading.sample_seconds > 0


def test_large_weights_have_no_values_and_small_values_are_real(found):
    module = found(POPTORCH).what.module
    inner = next(each for each in module.modules() if hasattr(each, "rates"))
    assert isinstance(inner.wide.weight, FakeTensor)
    assert inner.rates[0] == 0.0
    assert inner.rates[-1] == pytest.approx(0.1)


def test_the_scripts_own_exception_handlers_do_not_catch_the_end(found):
    subject = found(PILOTAGE).what
    assert {str(each.dtype) for each in subject.module.parameters()} == {"torch.bfloat16"}


def test_a_function_is_called(tmp_path, monkeypatch):
    body = "\n".join(f"    {line}" for line in PLAIN.replace("sys.argv[1]", "'8'").splitlines())
    (tmp_path / "training_of_mine.py").write_text(f"def main():\n{body}\n")
    monkeypatch.chdir(tmp_path)
    assert isinstance(find("training_of_mine:main").what, Traced)
    with pytest.raises(PredictionError, match="cannot be found"):
        find("training_of_mine:nothing")


def test_a_function_without_parameters_reads_its_arguments_from_the_command_line(tmp_path, monkeypatch):
    body = "\n".join(f"    {line}" for line in PLAIN.splitlines())
    (tmp_path / "training_by_words.py").write_text(f"def main():\n{body}\n")
    monkeypatch.chdir(tmp_path)
    assert isinstance(find("training_by_words:main", ["8"]).what, Traced)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("print('nothing')", "without a call of a program"),
        ("raise ValueError('broken')", "failed before its first training step, at script.py:1: ValueError: broken"),
        ("import sys; sys.exit(4)", "ended with status 4"),
    ],
)
def test_a_script_that_never_trains_is_refused(found, text, problem):
    with pytest.raises(PredictionError, match=problem):
        found(text)


def test_a_missing_script_is_refused():
    with pytest.raises(PredictionError, match="does not exist"):
        find("nowhere.py")
    with pytest.raises(PredictionError, match="neither a script"):
        find("nowhere")


def test_a_failure_names_the_line_of_the_script(found):
    with pytest.raises(
        PredictionError, match=r"failed before its first training step, at script.py:2: JSONDecodeError"
    ):
        found("import json\njson.loads('no')\n")
    with pytest.raises(PredictionError, match=r"at script.py:3: RuntimeError"):
        found("import torch\n\ntorch.zeros(2) @ torch.zeros(3)\n")


def test_a_script_that_never_trains_raises_an_error(found):
    with pytest.raises(PredictionError, match="no update can be predicted"):
        found("import torch\ntorch.nn.Linear(2, 2)(torch.zeros(1, 2))\n")


def test_a_plain_script_has_its_own_types_and_parameters(found):
    traced = found(
        PLAIN.replace("Net()", "Net().bfloat16()", 1).replace("torch.randn(64, 64)", "torch.randn(64, 64).bfloat16()")
    ).what
    assert isinstance(traced, Traced)
    assert traced.types == ("bfloat16",)
    assert traced.parameters == 64 * 512 + 512 + 512 * 4 + 4

"""Where the wrapped model is made, seen in the ported scripts."""

from __future__ import annotations

from pathlib import Path

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
STEP = """\
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
"""


def ported(**texts: str) -> dict[str, str]:
    report = port_texts({Path(f"p/{name}.py"): HEAD + text for name, text in texts.items()}, Target.PILOTAGE)
    assert report.is_complete, [str(each) for each in report.findings]
    return {file.path.stem: file.after for file in report.files}


def test_a_function_that_is_called_once_makes_it_before_its_loop():
    text = f"""
def train(model, optimizer, loader):
    model.train()
    for x, y in loader:
{STEP}

model = nn.Linear(1, 1)
train(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)
"""
    after = ported(script=text)["script"]
    made = "training_model = pilotage.training(ModelWithLoss(model), optimizer)"
    assert f"    model.train()\n    {made}\n    for x, y in loader:\n" in after
    assert "def train(model, optimizer, loader):" in after


def test_a_function_in_a_loop_gets_it_through_all_its_callers():
    text = f"""
def step(model, optimizer, x, y):
    if True:
{STEP}

def epoch(model, optimizer, loader):
    for x, y in loader:
        step(model, optimizer, x, y)


model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number in range(3):
    epoch(model, optimizer, loader)
"""
    after = ported(script=text)["script"]
    assert "def step(model, optimizer, x, y, *, training_model):" in after
    assert "def epoch(model, optimizer, loader, *, training_model):" in after
    assert "step(model, optimizer, x, y, training_model=training_model)" in after
    assert "epoch(model, optimizer, loader, training_model=training_model)" in after


def test_another_file_imports_the_joined_module():
    engine = f"""
def train(model, optimizer, loader):
    for x, y in loader:
{STEP}"""
    main = """
from engine import train

model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    train(model, optimizer, loader)
"""
    after = ported(engine=engine, main=main)
    assert "from engine import ModelWithLoss\n" in after["main"]
    assert "training_model = pilotage.training(ModelWithLoss(model), optimizer)" in after["main"]
    assert "class ModelWithLoss(nn.Module):" in after["engine"]


def test_a_class_keeps_it_as_an_attribute_once_everything_is_there():
    text = """
class Trainer:
    def __init__(self):
        self.build()
        self.configure()
        self.epochs = 3

    def build(self):
        self.model = nn.Linear(1, 1)

    def configure(self):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = F.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
"""
    after = ported(script=text)["script"]
    expected = (
        "        self.configure()\n"
        "        self.training_model = pilotage.training(ModelWithLoss(self.model), self.optimizer)\n"
    )
    assert expected in after
    assert "loss = self.training_model(x, y)" in after


def test_a_closure_uses_what_its_function_makes():
    text = f"""
def make(model, optimizer):
    def step(x, y):
        if True:
{STEP.replace("        ", "            ")}        return loss
    return step


model = nn.Linear(1, 1)
step = make(model, torch.optim.SGD(model.parameters(), lr=0.1))
for x, y in loader:
    step(x, y)
"""
    after = ported(script=text)["script"]
    assert "    training_model = pilotage.training(ModelWithLoss(model), optimizer)\n    def step(x, y):" in after


def test_none_for_something_else_than_the_optimizer_does_not_mean_that_no_step_is_made():
    text = f"""
def train(model, optimizer, loader, weight=None):
    for x, y in loader:
{STEP.replace("y)", "y) if weight is None else weight * F.mse_loss(model(x), y)")}

model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    train(model, optimizer, loader)
"""
    after = ported(script=text)["script"]
    assert "training_model = pilotage.training(ModelWithLoss(model, None), optimizer)" in after
    assert "train(model, optimizer, loader, training_model=training_model)" in after

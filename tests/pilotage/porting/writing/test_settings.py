"""Limits and counts of a step, as they are written where the model is wrapped."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target
from pilotage.porting.writing.settings import conditional

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
STEP = """\
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        {clip}
        optimizer.step()
"""


def ported(target: Target = Target.PILOTAGE, **texts: str) -> dict[str, str]:
    report = port_texts({Path(f"p/{name}.py"): HEAD + text for name, text in texts.items()}, target)
    assert report.is_complete, [str(each) for each in report.findings]
    return {file.path.stem: file.after for file in report.files}


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ([], "limit"),
        (["limit is not None"], "limit"),
        (["limit"], "limit or None"),
        (["limit > 0"], "limit if limit > 0 else None"),
        (["a", "b"], "limit if a and b else None"),
    ],
)
def test_a_limit_under_a_condition_is_none_where_the_condition_is_not_met(tests, expected):
    assert conditional("limit", tests) == expected


def test_an_argument_is_called_what_the_caller_calls_it():
    text = f"""
def train(model, optimizer, loader, max_norm):
    for x, y in loader:
{STEP.format(clip="nn.utils.clip_grad_norm_(model.parameters(), max_norm)")}

def main(args):
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        train(model, optimizer, loader, args.clip)


main(settings)
"""
    assert "pilotage.training(ModelWithLoss(model), optimizer, clip_grad_norm=args.clip)" in ported(s=text)["s"]
    after = ported(Target.POPTORCH, s=text)["s"]
    assert "    optimizer.max_grad_norm = args.clip\n" in after


def test_a_constant_of_another_file_is_written_as_its_value():
    loop = f"""
CLIP = 0.25


def train(model, optimizer, loader):
    for x, y in loader:
{STEP.format(clip="nn.utils.clip_grad_norm_(model.parameters(), CLIP)")}
"""
    main = """
from loop import train

model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    train(model, optimizer, loader)
"""
    assert "clip_grad_norm=0.25)" in ported(loop=loop, main=main)["main"]
    assert "lr=0.1, max_grad_norm=0.25)" in ported(Target.POPTORCH, loop=loop, main=main)["main"]

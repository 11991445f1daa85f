from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target

HEAD = "import sys\nimport torch\nfrom torch import nn\n"
TRAINING = """\
model = nn.Linear(8, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    output = model(x)
    loss = criterion(output, y)
    loss.backward()
    optimizer.step()
"""


def ported(text: str) -> str:
    report = port_texts({Path("script.py"): HEAD + text + TRAINING}, Target.PILOTAGE)
    assert report.is_complete, report.findings
    return report.files[0].after.partition("import pilotage\n")[2].partition("model = nn.Linear")[0].strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if torch.cuda.is_available():\n    print(torch.cuda.get_device_name())\n", ""),
        (
            "if torch.cuda.is_available():\n    a = 1\nelse:\n    # None.\n    a = 2\n    b = 3\n",
            "# None.\na = 2\nb = 3",
        ),
        (
            "if torch.cuda.is_available():\n    a = 1\nelif fast:\n    a = 2\nelse:\n    a = 3\n",
            "if fast:\n    a = 2\nelse:\n    a = 3",
        ),
        (
            "if fast:\n    a = 1\nelif torch.cuda.is_available():\n    a = 2\nelse:\n    a = 3\n",
            "if fast:\n    a = 1\nelse:\n    a = 3",
        ),
        ("if fast:\n    a = 1\nelif torch.cuda.is_available():\n    a = 2\n", "if fast:\n    a = 1"),
        ("if args.cuda and torch.cuda.is_available():\n    a = 1\n", ""),
        ("if args.cuda or torch.cuda.is_available():\n    a = 1\n", "if args.cuda or False:\n    a = 1"),
        ("assert torch.cuda.is_available(), 'no GPU'\n", ""),
        ("if not torch.cuda.is_available():\n    sys.exit('no GPU')\n", ""),
        ("if not torch.cuda.is_available():\n    a = 1\n", "if not False:\n    a = 1"),
        ("torch.cuda.synchronize() if torch.cuda.is_available() else None\n", ""),
        ("use_cuda = not args.no_cuda and torch.cuda.is_available()\n", "use_cuda = False"),
        ("a = next(loaders) and torch.cuda.is_available()\n", "a = next(loaders) and False"),
        ("if torch.cuda.is_available(): a = 1\nelse: a = 2\n", "if False:\n    a = 1\nelse: a = 2"),
    ],
)
def test_branches_that_need_cuda_go(text, expected):
    assert ported(text) == expected


def test_a_branch_that_trains_stays():
    text = HEAD + "if torch.cuda.is_available():\n" + "".join(f"    {line}\n" for line in TRAINING.splitlines())
    after = port_texts({Path("script.py"): text}, Target.PILOTAGE).files[0].after
    assert "training_model(x, y)" in after

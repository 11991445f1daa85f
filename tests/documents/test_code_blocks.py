"""Every block of Python in the documents runs: those of a page one after the other, as a reader would type them."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pilotage.cli import main
from pilotage.cli.monitor import gc_monitor, hl_smi
from pilotage.cli.run import poprun

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("examples/**/README.md")),
    ROOT / "README.md",
    ROOT / "dropins/README.md",
]
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)

ELSEWHERE = {
    "README.md": "tests/project/test_readme.py",
    "docs/custom-operators.md": "tests/project/test_custom_operators_page.py",
    "docs/libraries.md": "tests/documents/test_libraries_page.py",
    "docs/porting-rules.md": "tests/tools/test_porting_rules.py",
}
"""Pages whose blocks another test runs."""

PARSERS = {
    "pilotage": main.build_parser,
    "poprun": poprun.build_parser,
    "gc-monitor": gc_monitor.build_parser,
    "hl-smi": hl_smi.build_parser,
}

NEEDS = {"docs/cosmictagger-tensorflow.md": "tensorflow"}
"""Pages that need a package that is rarely installed."""

SETTINGS = {
    "docs/cosmictagger-events.md": """
from pathlib import Path
from cosmictagger.data.generator.file import generate_file
generate_file(Path("events.h5"), events=4, seed=1)
""",
    "docs/scaling.md": """
import torch, pilotage, poptorch, popdist.poptorch
from torch import nn
dataset = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 2))
class Regression(nn.Linear):
    def forward(self, inputs, targets):
        outputs = super().forward(inputs)
        return outputs, nn.functional.mse_loss(outputs, targets)
net = Regression(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
updates, first_batch = 12, dataset[:16]
loss = None
loader = torch.utils.data.DataLoader(dataset, batch_size=16)
""",
}
"""What the blocks of a page take for granted."""

PIECES = ("docs/scaling.md",)
"""Pages whose blocks belong to different programs."""

OWN_PROCESS = ("docs/gaudi.md", "docs/start/gaudi.md")
"""Pages that register a device, which lasts until the process ends."""

SHORTER = {"docs/monitoring.md": ("time.monotonic() + 60", "time.monotonic() + 0.2")}
"""What takes less time in the test."""


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path) -> list[str]:
    """The blocks of Python, without the spaces of a list or a tab around them."""
    found = BLOCK.findall(path.read_text())
    return ["\n".join(line.removeprefix(spaces) for line in code.split("\n")) for spaces, code in found]


WITH_CODE = [path for path in DOCUMENTS if blocks(path)]
HERE = [path for path in WITH_CODE if label(path) not in ELSEWHERE]


def test_pages_that_are_run_elsewhere_exist_and_so_do_their_tests():
    assert set(ELSEWHERE) <= {label(path) for path in WITH_CODE}
    assert all((ROOT / test).exists() for test in ELSEWHERE.values())


def commands(path: Path) -> list[list[str]]:
    """The command lines of ours in blocks for a shell, as words."""
    text = "".join(re.findall(r"^```(?:sh|bash)\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL))
    found = [
        shlex.split(line, comments=True)
        for line in text.replace("\\\n", " ").splitlines()
        if line.split(" ")[0] in PARSERS
    ]
    return [words[: words.index("|")] if "|" in words else words for words in found]


def test_every_command_line_of_ours_is_understood(capsys):
    lines = [(path, words) for path in DOCUMENTS for words in commands(path)]
    assert len(lines) > 5
    refused = [(label(path), words) for path, words in lines if not is_understood(words)]
    assert not refused, capsys.readouterr().err


def is_understood(words: list[str]) -> bool:
    try:
        PARSERS[words[0]]().parse_args(words[1:])
    except SystemExit as stopped:
        return stopped.code == 0
    return True


def test_every_block_says_its_language_if_it_is_python():
    for path in DOCUMENTS:
        unnamed = re.findall(r"^```\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)
        assert not [code for code in unnamed if re.match(r"import |from \w+ import ", code)], label(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", HERE, ids=label)
def test_the_blocks_of_a_page_run_one_after_the_other(path, tmp_path, monkeypatch):
    if (needed := NEEDS.get(label(path))) and importlib.util.find_spec(needed) is None:
        pytest.skip(f"needs {needed}")
    monkeypatch.chdir(tmp_path)
    for number, program in enumerate(programs(path)):
        script = tmp_path / f"page_{number}.py"
        script.write_text(program)
        if label(path) in OWN_PROCESS:
            ran = subprocess.run([sys.executable, script], capture_output=True, text=True)
            assert ran.returncode == 0, ran.stdout + ran.stderr
        else:
            exec(compile(program, script, "exec"), {"__name__": "page"})


def programs(path: Path) -> list[str]:
    """What to run: the whole page, or each block where they are pieces of different programs."""
    name, found = label(path), blocks(path)
    if name in SHORTER:
        assert SHORTER[name][0] in found[0]
        found[0] = found[0].replace(*SHORTER[name])
    start = SETTINGS.get(name, "")
    return [start + block for block in found] if name in PIECES else [start + "\n".join(found)]

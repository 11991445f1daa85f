"""Every command line in the documents runs, with sizes cut; what cannot run here has its reason.

The pages of CosmicTagger have their own test, in tests/cosmictagger/test_command_published.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(page for page in ROOT.glob("docs/**/*.md") if not page.name.startswith("cosmictagger")),
    *sorted(ROOT.glob("examples/**/README.md")),
    *(ROOT / name for name in ("README.md", "dropins/README.md", "CONTRIBUTING.md")),
]
FENCE = re.compile(r"^( *)```(\S*)")

NOT_HERE = {
    r"source \.venv/bin/activate": "changes the reader's own shell",
    r"python3 -m venv \.venv|pip install .*": "`make dist` installs the wheels into a bare environment",
    r"\.venv/bin/pre-commit install": "changes the repository",
    r"jupyter lab .*": "opens a browser; `python -m tools.run_notebook` runs the notebook",
    r"poprun --host node\[1-4\] .*": "needs four hosts; test_launch_on_hosts.py plays them",
    r"cosmictagger mode=.*": "tests/cosmictagger/test_command_published.py runs it",
}
"""Lines that are not run, and why."""

SHORTER = (
    (r"^make( .*)?$", r"make --dry-run\1"),
    (r"^\.venv/bin/pytest (.*)$", r"python -m pytest --collect-only -q \1"),
    (r"^(python examples/fashion_mnist (?:all|train).*)$", r"\1 --data generated --subset 320 --epochs 1"),
    (r"^(python examples/fashion_mnist evaluate.*)$", r"\1 --data generated --subset 320"),
    (r"^(python examples/porting/pytorch_\w+\.py)$", r"\1 --data generated --subset 160 --epochs 1"),
    (r"--subset 2000", "--subset 320"),
    (r"^(pilotage prove \S+ \S+)$", r"\1 --steps 5 -- --data generated --subset 160 --epochs 1"),
    # The scripts of the guides normalise over the batch on purpose: prove finds it and exits with 1.
    (r"^(pilotage prove .*)$", r"\1 || test $? = 1"),
    (r"^(python examples/gaudi/mnist_\w+\.py.*|torchrun .*)$", r"\1 --epochs 1"),
    (r"^(diff .*)$", r"\1 || test $? = 1"),
    (r"/opt/pilotage", "$PWD/built"),
    (
        r"^pilotage cache clear 3fa9$",
        'pilotage cache clear "$(ls executables | grep -v "^\\." | head -n 1 | cut -c 1-12)"',
    ),
    (r"^(pilotage profile .*? )-- ", r"\1--steps 3 --warmup 1 --looks 1 --no-predict -- "),
    (r"^(python examples/faster/faster\.py)$", r"sed -i 's/EPOCHS = 6/EPOCHS = 1/' examples/faster/faster.py; \1"),
)
"""What is changed in a line so that it takes seconds; the rest of it stays."""

PLAIN = """
import argparse, sys
import torch

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=16)
    arguments = parser.parse_args(sys.argv[1:])
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(6)), torch.nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40 * arguments.epochs):
        inputs, labels = torch.randn(arguments.batch_size, 8), torch.randint(0, 3, (arguments.batch_size,))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

if __name__ == "__main__":
    main()
"""

REGRESSION = """
import torch

class Regression(torch.nn.Linear):
    def forward(self, inputs, targets):
        outputs = super().forward(inputs)
        return outputs, torch.nn.functional.mse_loss(outputs, targets)

dataset = torch.utils.data.TensorDataset(torch.randn(128, 4), torch.randn(128, 2))
net = Regression(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""

SIX_LAYERS = """
import argparse
import poptorch, torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(6)))

    def forward(self, x, labels):
        scores = self.layers(x)
        return scores, torch.nn.functional.cross_entropy(scores, labels)

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.parse_args()
net = Net()
training = poptorch.trainingModel(net, poptorch.Options(), poptorch.optim.SGD(net.parameters(), lr=0.1))
training(torch.randn(16, 8), torch.arange(16) % 8)
"""

FOUR_STAGES = """
import popdist.poptorch, poptorch, torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(4))

    def forward(self, x, labels):
        for number, layer in enumerate(self.layers):
            with poptorch.Block(f"layer {number}", ipu_id=number):
                x = layer(x)
                if number == 3:
                    return x, torch.nn.functional.cross_entropy(x, labels)

options = popdist.poptorch.Options(ipus_per_replica=4)
options.setExecutionStrategy(poptorch.PipelinedExecution(poptorch.AutoStage.SameAsIpu))
options.Training.gradientAccumulation(8)
net = Net()
training = poptorch.trainingModel(net, options, poptorch.optim.SGD(net.parameters(), lr=0.1))
_, loss = training(torch.randn(16, 4), torch.arange(16) % 4)
print(f"loss {loss.mean():.3f}")
"""

COMPILED = """
import torch, pilotage
model = torch.nn.Linear(2, 2)
step = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), loss=torch.nn.MSELoss(), tier="compiled")
step(torch.ones(2, 2), torch.ones(2, 2))
"""


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[list[str]]:
    """The lines of the blocks in these languages."""
    found: list[list[str]] = []
    language = None
    for line in page.read_text().splitlines():
        fence = FENCE.match(line)
        if fence and language is None:
            language, spaces = fence[2], fence[1]
            found += [[]] if language in languages else []
        elif fence:
            language = None
        elif language in languages:
            found[-1].append(line.removeprefix(spaces))
    return found


def scripts(page: Path) -> list[list[str]]:
    """The commands of each block, with continued lines joined and without comments."""
    found = []
    for lines in blocks(page, "sh", "bash", "console"):
        shown = [line[2:] for line in lines if line.startswith("$ ")] or lines
        joined = "\n".join(shown).replace("\\\n", " ").split("\n")
        found.append([re.sub(r"\s+#\s.*$", "", line).strip() for line in joined if line.strip()])
    return found


def reason_not_to_run(command: str) -> str | None:
    return next((reason for pattern, reason in NOT_HERE.items() if re.fullmatch(pattern, command)), None)


def shorter(command: str) -> str:
    for pattern, replacement in SHORTER:
        command = re.sub(pattern, replacement, command)
    return command


BLOCKS = [(page, number) for page in PAGES for number in range(len(scripts(page)))]


def name(value: object) -> str:
    return label(value) if isinstance(value, Path) else str(value)


def test_there_are_blocks_and_each_reason_and_each_change_is_needed():
    commands = [command for page in PAGES for script in scripts(page) for command in script]
    assert len(BLOCKS) >= 20
    assert all(any(re.fullmatch(pattern, command) for command in commands) for pattern in NOT_HERE)
    assert all(any(re.search(pattern, command) for command in commands) for pattern, _ in SHORTER)


def test_every_block_says_its_language():
    for page in PAGES:
        assert not blocks(page, ""), label(page)


def program_of_the_page(page: Path) -> str:
    return "\n".join("\n".join(lines) for lines in blocks(page, "python"))


def prepare(folder: Path, page: Path, number: int, run: Callable[[str], str]) -> None:
    """Put what the commands of a block take for granted into an empty folder."""
    kind = label(page)
    if kind.startswith("examples/") or kind in ("docs/porting.md", "docs/proving.md"):
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        if "my-shoe.jpg" in page.read_text():
            from PIL import Image

            Image.new("L", (40, 40), 200).save(folder / "my-shoe.jpg")
        if kind == "docs/porting.md" and number > 2:
            run("pilotage port examples/porting/pytorch_gpu.py --to poptorch -o examples/porting/ported.py")
    elif kind == "docs/scaling.md":
        (folder / "train.py").write_text(FOUR_STAGES if number else REGRESSION + "\n".join(blocks(page, "python")[0]))
    elif kind in ("docs/start/popdist.md", "docs/tutorials/pipelining.md"):
        (folder / "train.py").write_text(program_of_the_page(page))
    elif kind in ("docs/predicting.md", "docs/profiling.md"):
        (folder / "train.py").write_text(SIX_LAYERS if kind == "docs/predicting.md" else PLAIN)
        (folder / "mypackage").mkdir()
        (folder / "mypackage" / "training.py").write_text(PLAIN)
    elif kind == "docs/cache.md":
        (folder / "train.py").write_text(COMPILED)
        run("python train.py")


@pytest.mark.long
@pytest.mark.parametrize(("page", "number"), BLOCKS, ids=name)
def test_the_commands_of_a_block_run(page, number, tmp_path):
    commands = scripts(page)[number]
    runnable = [shorter(command) for command in commands if reason_not_to_run(command) is None]
    if not runnable:
        pytest.skip("; ".join(sorted({str(reason_not_to_run(command)) for command in commands})))
    in_repository = any(re.match(r"make|python -m pytest", command) for command in runnable)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "PILOTAGE_BACKEND": "cpu",
    }
    if label(page) == "docs/cache.md":
        environment["PILOTAGE_CACHE_DIR"] = str(tmp_path)

    def run(script: str) -> str:
        folder = ROOT if in_repository else tmp_path
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, f"{script}\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}"
        return ran.stdout

    prepare(tmp_path, page, number, run)
    run("\n".join(runnable))

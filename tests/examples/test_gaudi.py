"""Gaudi scripts compared with the plain scripts they were made from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

GAUDI = Path(__file__).parents[2] / "examples" / "gaudi"
IN_TURN = """
import os, runpy, sys
for line in sys.argv[1:]:
    script, *options = line.split()
    if os.environ.get("RANK", "0") == "0":
        print("==", line, flush=True)
    sys.argv = [script, *options]
    runpy.run_path(script, run_name="__main__")
"""


@pytest.fixture
def printed(tmp_path):
    """Runs scripts one after the other, in one process or in several, and returns the lines that each printed."""

    def start(*scripts: str, processes: int = 0) -> list[list[str]]:
        program = tmp_path / "in_turn.py"
        program.write_text(IN_TURN)
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"] if processes else []
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(GAUDI)}
        command = [sys.executable, *launcher, str(program), *scripts]
        done = subprocess.run(command, cwd=GAUDI, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [part.splitlines()[1:] for part in done.stdout.split("== ")[1:]]

    return start


def test_gaudi_scripts_give_the_losses_of_the_plain_scripts(printed):
    card, host, fused, graphed, plain = printed(
        "mnist_hpu.py --epochs 2 --lazy",
        "mnist_cpu.py --epochs 2",
        "transformer_hpu.py --steps 20 --log-every 5",
        "transformer_hpu.py --steps 20 --log-every 5 --graphs",
        "transformer_cpu.py --steps 20 --log-every 5",
    )
    assert len(host) == 3
    assert card == host
    assert len(plain) == 4
    assert fused == graphed
    for one, other in zip(fused, plain, strict=True):
        # The vendor's AdamW adds epsilon to the uncorrected root.
        assert loss_of(one) == pytest.approx(loss_of(other), rel=1e-4)


def loss_of(line):
    return float(line.rpartition(" ")[2])


def test_two_processes_give_the_losses_of_the_plain_script(printed):
    card, host = printed("ddp_hpu.py --epochs 2", "ddp_cpu.py --epochs 2", processes=2)
    assert len(host) == 2
    assert card == host

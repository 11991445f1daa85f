"""optimum-habana's GaudiTrainer on the emulated card, compared with transformers' own Trainer on the CPU.

`make test-ecosystem` runs this with an environment of its own, whose folder is in PILOTAGE_ECOSYSTEM.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ENVIRONMENT = os.environ.get("PILOTAGE_ECOSYSTEM")
PROGRAM = Path(__file__).with_name("tiny_bert.py")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(ENVIRONMENT is None, reason="`make test-ecosystem` installs optimum-habana"),
]


def trained(mode: str, folder: Path) -> tuple[dict[str, Any], str]:
    """The losses that the program prints, and its log."""
    assert ENVIRONMENT is not None
    binaries = Path(ENVIRONMENT, "bin")
    # optimum-habana asks the pip on the path for the version of the bridge.
    environment = {
        **os.environ,
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "PT_HPU_LAZY_MODE": "0" if mode == "eager" else "1",
    }
    command = [str(binaries / "python"), str(PROGRAM), mode, str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    assert ran.returncode == 0, ran.stderr[-4000:]
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT ")), ran.stderr


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> dict[str, Any]:
    found, _ = trained("cpu", tmp_path_factory.mktemp("cpu"))
    assert found["training"][-1] < found["training"][0]
    return found


@pytest.mark.parametrize(("mode", "tolerance"), [("eager", 1e-4), ("lazy", 1e-4), ("graphs", 1e-4), ("bf16", 0.1)])
def test_gaudi_trainer_trains_and_evaluates_as_transformers_trainer_does(tmp_path, plain, mode, tolerance):
    found, log = trained(mode, tmp_path)
    assert (plain["device"], found["device"]) == ("cpu", "hpu")
    for name in ("before", "training", "evaluation", "predictions"):
        assert found[name] == pytest.approx(plain[name], rel=tolerance, abs=tolerance), name
    assert ("Lazy mode would have run" in log) is (mode != "eager")

"""The tutorial's port and CosmicTagger's compute modes are proved against their originals."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
COSMIC = (
    "mode=train network=a21 network.depth=3 data.downsample=3 data.events=24 data.aux_events=4 run.iterations=8 "
    "run.minibatch_size=2 framework.seed=7 data.seed=3"
)


def prove(folder, *arguments):
    """The result of `pilotage prove`."""
    command = [sys.executable, "-m", "pilotage", "prove", "--json", "result.json", "--picture", "proof.png", *arguments]
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert (folder / "result.json").exists(), ran.stderr
    assert (folder / "proof.png").exists()
    return json.loads((folder / "result.json").read_text())


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_tutorials_port_trains_the_same_and_its_softmax_over_the_batch_is_found(tmp_path):
    scripts = [str(ROOT / "examples/porting" / name) for name in ("pytorch_gpu.py", "pytorch_ipu.py")]
    result = prove(tmp_path, *scripts, "--", "--data", "generated", "--subset", "2000", "--epochs", "1")
    assert result["verdict"] == "same", result["comparison"]
    (finding,) = result["findings"]
    assert (finding["name"], finding["file"]) == ("loss-depends-on-batch-split", scripts[1])
    assert "self.log_softmax(" in Path(scripts[1]).read_text().splitlines()[finding["line"] - 1]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", ["IPU", "HPU", "PopDist"])
def test_cosmictagger_trains_the_same_in_every_mode(tmp_path, case):
    before = f"{sys.executable} -m cosmictagger {COSMIC} run.id=before run.compute_mode=CPU"
    after = f"{sys.executable} -m cosmictagger {COSMIC} run.id=after run.compute_mode={case}"
    if case == "PopDist":
        # Each process normalises its own part of the batch, so the original needs two as well.
        script = f"{ROOT / 'bin/exec.py'} {COSMIC} run.id=before run.compute_mode=CPU run.distributed=true"
        before = f"torchrun --standalone --nproc-per-node 2 {script}"
        after = f"poprun --num-instances=2 --num-replicas=2 {after.replace(case, 'IPU')}"
    result = prove(tmp_path, "--before-command", before, "--after-command", after, "--steps", "8")
    assert result["verdict"] == "same", result["comparison"]
    if case == "PopDist":
        # Each process has one event, and nothing to split.
        assert result["findings"] == []
        return
    # The weights of the loss are normalised over the whole batch, as in the original.
    (finding,) = result["findings"]
    assert finding["name"] == "loss-depends-on-batch-split"
    assert "weights / _per_plane(weights)" in Path(finding["file"]).read_text().splitlines()[finding["line"] - 1]
    assert "keep the micro-batch of the original" in finding["remedy"]

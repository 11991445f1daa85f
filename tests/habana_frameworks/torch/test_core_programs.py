"""Programs in the style of the vendor's public ones: digits, classification with LARS, and BERT pretraining."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

PROGRAMS = Path(__file__).with_name("programs")


def environment(**more: str) -> dict[str, str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PT_HPU", "RANK", "WORLD_SIZE"))}
    return {**known, "OMP_NUM_THREADS": "1", **more}


def run(command: list[str], **more: str) -> dict[str, Any]:
    ran = subprocess.run(command, capture_output=True, text=True, env=environment(**more))
    assert ran.returncode == 0, ran.stderr[-4000:]
    return printed(ran.stdout)


def printed(text: str) -> dict[str, Any]:
    (line,) = (line for line in text.splitlines() if line.startswith("{"))
    return json.loads(line)


def mnist(*options: str) -> dict[str, Any]:
    return run([sys.executable, str(PROGRAMS / "mnist.py"), *options])


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    found = mnist()
    assert found["losses"][-1] < 0.5 * found["losses"][0]
    return found


@pytest.mark.parametrize("options", [[], ["--use_lazy_mode"], ["--use_torch_compile"]])
def test_digits_have_the_processors_losses(plain, options):
    found = mnist("--hpu", *options)
    assert found["losses"] == pytest.approx(plain["losses"], rel=1e-5)
    assert found["right"] == plain["right"]


@pytest.mark.parametrize("options", [["--autocast"], ["--autocast", "--use_torch_compile"]])
def test_digits_train_in_bfloat16(plain, options):
    found = mnist("--hpu", *options)
    assert found["losses"] != plain["losses"]
    assert found["losses"] == pytest.approx(plain["losses"], abs=0.4)
    assert found["losses"][-1] < 0.5 * found["losses"][0]


def free_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


@pytest.mark.parametrize("launcher", ["torchrun", "mpirun", "the variables of mpirun"])
def test_two_processes_have_the_losses_of_one(plain, launcher):
    program = [sys.executable, str(PROGRAMS / "mnist.py"), "--hpu"]
    port = {"MASTER_PORT": free_port()}
    if launcher == "torchrun":
        found = run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *program[1:]])
    elif launcher == "mpirun":
        if shutil.which("mpirun") is None:
            pytest.skip("mpirun is not installed")
        found = run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", *program], **port)
    else:
        ranks = [
            {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": rank}
            for rank in ("0", "1")
        ]
        started = [
            subprocess.Popen(program, env=environment(**port, **rank), stdout=subprocess.PIPE, text=True)
            for rank in ranks
        ]
        texts = [process.communicate()[0] for process in started]
        assert [process.returncode for process in started] == [0, 0]
        found = printed(texts[0])
    assert found["world_size"] == 2
    # Both halves of each batch together are the batch of one process.
    assert found["losses"] == pytest.approx(plain["losses"], rel=1e-2, abs=1e-3)


def test_pictures_are_classified_with_lars_graphs_and_a_profile(tmp_path):
    command = [sys.executable, str(PROGRAMS / "classification.py"), str(tmp_path)]
    found = run(command, PT_HPU_LAZY_MODE="1")
    assert found["losses"] == pytest.approx(found["plain"], rel=1e-5)
    assert found["losses"][-1] < 0.5 * found["losses"][0]
    assert found["right"] > 0.5
    assert found["compiled"] > 0
    (trace,) = tmp_path.glob("*.json*")
    assert trace.stat().st_size > 0


def test_bert_is_pretrained_with_lamb_in_lazy_bfloat16():
    found = run([sys.executable, str(PROGRAMS / "bert.py")], PT_HPU_LAZY_MODE="1")
    assert found["type"] == "torch.bfloat16"
    assert sum(found["losses"][-5:]) < 0.9 * sum(found["losses"][:5])

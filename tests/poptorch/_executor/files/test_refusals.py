"""Damaged and foreign files are refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap

import pytest
import torch

import poptorch
from pilotage.storage.archive import read_archive, write_archive

pytestmark = pytest.mark.slow


def test_a_file_of_another_version_is_refused(path, inputs, targets, trainer):
    trainer().compileAndExport(path, inputs, targets)
    content, tensors = read_archive(path)
    content["extra"]["poptorch"] = "2.0.0"
    write_archive(path, content, tensors)
    for load in (poptorch.load, trainer().loadExecutable):
        with pytest.raises(AssertionError, match=r"Invalid file .*PopTorch version mismatch"):
            load(path)


def test_a_file_that_is_missing_is_named(path):
    with pytest.raises(FileNotFoundError, match=r"model\.poptorch"):
        poptorch.load(path)


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused(path, fraction, inputs, targets, trainer):
    trainer().compileAndExport(path, inputs, targets)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * fraction)])
    with pytest.raises(poptorch.Error, match=r"model\.poptorch is not a program of Pilotage, or is truncated"):
        poptorch.load(path)


def test_a_modified_file_is_refused(path, inputs, targets, trainer):
    trainer().compileAndExport(path, inputs, targets)
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    entries = [
        entry["data_offsets"] for name, entry in json.loads(data[8 : 8 + size]).items() if name != "__metadata__"
    ]
    places = [8 + size // 2, *(8 + size + (start + end) // 2 for start, end in entries if start < end)]
    assert len(places) > 3
    for place in places:
        altered = bytearray(data)
        altered[place] ^= 255
        path.write_bytes(altered)
        with pytest.raises(poptorch.Error, match=r"model\.poptorch is (damaged|not a program of Pilotage)"):
            poptorch.load(path)


def test_a_file_of_another_kind_is_refused(path):
    torch.save({"weights": torch.ones(1)}, path)
    with pytest.raises(poptorch.Error, match="is not a program of Pilotage"):
        poptorch.load(path)
    path.write_text("text")
    with pytest.raises(poptorch.Error, match="is not a program of Pilotage"):
        poptorch.load(path)


def test_a_failed_write_keeps_the_old_file(path, inputs, targets, trainer):
    trainer().compileAndExport(path, inputs, targets)
    before = path.read_bytes()

    class Unknown:
        pass

    model = poptorch.inferenceModel(lambda x, what: x + 1)
    model.compile(inputs, Unknown())
    with pytest.raises(poptorch.Error, match="cannot be written to a file"):
        model.save(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.long
def test_a_process_killed_while_it_saves_leaves_the_old_file(path):
    """Kill the saving process at many moments: the file is always complete."""
    program = f"""
        import sys, torch, poptorch
        from torch import nn
        model = poptorch.inferenceModel(nn.Linear(2000, 2000))
        model.compile(torch.ones(1, 2000))
        model.save({str(path)!r})
        print("ready", flush=True)
        while True:
            model.save({str(path)!r})
            print("saved", flush=True)
    """
    for saves in range(5):
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        for _ in range(saves):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert poptorch.load(path)(torch.ones(1, 2000)).shape == (1, 2000)

"""Instances save and restore together: one run, one step, and nothing that only some of them have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from torch import nn

import pilotage
from pilotage.distributed.peers import peers_here
from pilotage.events import Warned

pytestmark = pytest.mark.slow


def rank():
    return peers_here().world.rank


def begin():
    warnings = []
    torch.manual_seed(3)
    module = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
    step = pilotage.training(
        module,
        torch.optim.Adam(module.parameters(), lr=0.02),
        loss=nn.CrossEntropyLoss(),
        distributed=True,
        tier="graph",
        broadcast_buffers=False,
        listeners=[lambda e: warnings.append(e.message) if isinstance(e, Warned) else None],
    )
    step.compile(*batch(0))
    return step, warnings


def batch(number):
    generator = torch.Generator().manual_seed(number + 1000 * rank())
    return torch.randn(8, 4, generator=generator), torch.randint(2, (8,), generator=generator)


def path_of(folder, number, process):
    return Path(folder) / f"checkpoint-{number:08d}-{process:04d}.pilotage"


def save(step, folder, *numbers):
    for number in numbers:
        step(*batch(number))
        step.save_checkpoint(folder, number)


def meet():
    peers_here().wait_for_all()


def alone(process, action, *arguments):
    """One of the processes does something to the files, while the others wait."""
    meet()
    if rank() == process:
        action(*arguments)
    meet()


def said(action, *arguments):
    try:
        return action(*arguments)
    except pilotage.PilotageError as error:
        return f"{type(error).__name__}: {error}"


def found_by(folder):
    step, warnings = begin()
    found = said(step.restore_checkpoint, folder)
    return step, found if found is None or isinstance(found, str) else found.step, warnings


def observe(folder):
    folder, seen = Path(folder), {}
    step, _ = begin()
    save(step, folder / "run", 1, 2, 3)

    # Killed during a save: one instance lacks the last file, and no file is damaged.
    alone(1, os.unlink, path_of(folder / "run", 3, 1))
    step, seen["missing"], seen["missing warnings"] = found_by(folder / "run")
    save(step, folder / "run", 3, 4)
    _, seen["after"], _ = found_by(folder / "run")

    # Files of an abandoned attempt are not mixed with later ones of another instance.
    alone(1, os.unlink, path_of(folder / "run", 4, 1))
    step, seen["before mixing"], _ = found_by(folder / "run")
    step(*batch(4))
    if rank() == 1:
        step.save_checkpoint(folder / "run", 4)
    meet()
    _, seen["not mixed"], _ = found_by(folder / "run")

    alone(1, os.truncate, path_of(folder / "run", 3, 1), 50)
    _, seen["damaged"], seen["damaged warnings"] = found_by(folder / "run")

    alone(0, os.unlink, path_of(folder / "run", 2, 0))
    alone(1, os.unlink, path_of(folder / "run", 3, 1))
    seen["lost"] = found_by(folder / "run")[1]

    # Another run, in a folder where only one instance has files.
    save(begin()[0], folder / "other", 1)
    alone(0, os.unlink, path_of(folder / "other", 1, 0))
    new, _ = begin()
    seen["refused"] = said(new.save_checkpoint, folder / "other", 5)

    # Killed during the first save: training starts over, in the same folder.
    step, seen["first"], seen["first warnings"] = found_by(folder / "other")
    save(step, folder / "other", 1, 2)
    _, seen["then"], _ = found_by(folder / "other")
    seen["names"] = sorted(os.listdir(folder / "other"))
    return seen


def test_instances_agree_on_the_run_the_step_and_the_refusal(world, tmp_path):
    for seen in world(observe, 2, folder=str(tmp_path)):
        assert seen["missing"] == 2
        assert seen["missing warnings"] == []
        assert seen["after"] == 4
        assert seen["before mixing"] == seen["not mixed"] == 3
        assert seen["damaged"] == 2
        assert str(path_of(tmp_path / "run", 3, 1)) in seen["damaged warnings"][0]
        assert seen["lost"].startswith("ProgramFileError: No checkpoint in")
        assert "0000 has 3, 4; 0001 has 2, 4" in seen["lost"]
        assert seen["refused"].startswith("OptionError: ")
        assert "contains checkpoints of another run; the last one is step 1" in seen["refused"]
        assert seen["first"] is None
        assert "was not finished by every process" in seen["first warnings"][0]
        assert seen["then"] == 2
        assert seen["names"] == sorted(path_of("", step, process).name for step in (1, 2) for process in (0, 1))

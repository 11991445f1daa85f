"""Instances switch to compiled code after the same update, and their weights stay equal in every bit."""

from __future__ import annotations

import os
import signal
import time

import pytest
import torch
from torch import nn

import pilotage
from pilotage.distributed.peers import peers_here
from pilotage.events import Noted, TierChanged

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

LATEST = 20_000
"""The largest number of calls."""

MORE = 5
"""Calls after the switch."""

PATIENCE = 1500
"""Seconds: compilers have a low priority, and other programs may use the cores."""


class Waves(nn.Module):
    """Many small operations, which compiled code is sure to run faster."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, x, y):
        x = nn.functional.dropout(self.first(x), 0.2)
        for number in range(20):
            x = x + 0.1 * torch.sin(number * x)
        return nn.functional.cross_entropy(self.last(x), y)


def train(caches, accumulation=1, calls=None, fixed=(), kill_at=None, tier=None):
    """Train until the tier changes, or for a number of calls."""
    peers = peers_here()
    rank = peers.world.rank
    if rank in fixed or tier is not None:
        os.environ["PILOTAGE_TIER"] = tier or "graph"
    torch.manual_seed(0)
    model, heard = Waves(), []
    trainer = pilotage.training(
        model,
        torch.optim.AdamW(model.parameters(), lr=0.01),
        distributed=True,
        gradient_accumulation=accumulation,
        clip_grad_norm=1.0,
        cache_directory=caches[rank % len(caches)],
        listeners=[heard.append],
    )
    generator = torch.Generator().manual_seed(rank + 1)
    batch = torch.randn(4 * accumulation, 8, generator=generator), torch.arange(4 * accumulation) % 3
    losses, left = [], None
    while len(losses) < (calls or LATEST) and left != 0:
        losses.append(trainer(*batch).detach().mean())
        if len(losses) == kill_at and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if trainer.record.tier_changes:
            left = MORE if left is None else left - 1
        else:
            # Leave the cores to the compilers.
            time.sleep(0.05)
    return {
        "changes": trainer.record.tier_changes,
        "calls": len(losses),
        "losses": torch.stack(losses),
        "weights": {name: each.clone() for name, each in model.state_dict().items()},
        "tiers": [event.tier for event in heard if isinstance(event, TierChanged)],
        "notes": [event.message for event in heard if isinstance(event, Noted)],
    }


def trained(instances, **arguments):
    """Two instances that train together; returns what each of them has found."""
    begun = instances()
    begun.start(train, 2, **arguments)
    begun.statuses(PATIENCE)
    return begun.answers()


def folders(tmp_path, count):
    made = [tmp_path / f"cache{number}" for number in range(count)]
    for each in made:
        each.mkdir(mode=0o700, exist_ok=True)
    return [str(each) for each in made]


def assert_equal_instances(one, other):
    assert one["calls"] == other["calls"]
    assert one["changes"] == other["changes"]
    for name, weight in one["weights"].items():
        assert torch.equal(weight, other["weights"][name]), name


@pytest.mark.parametrize("accumulation", [1, 2])
def test_instances_switch_after_the_same_update_and_after_a_restart_at_once(instances, tmp_path, accumulation):
    caches = folders(tmp_path, 1)
    one, other = trained(instances, caches=caches, accumulation=accumulation)
    assert_equal_instances(one, other)
    ((update, tier),) = one["changes"]
    assert tier == "compiled"
    assert update == one["calls"] - MORE
    again = trained(instances, caches=caches, accumulation=accumulation)
    assert_equal_instances(*again)
    assert again[0]["changes"] == [(1, "compiled")]
    # The same random numbers, so the losses of all tiers agree within rounding.
    shared = min(one["calls"], again[0]["calls"])
    torch.testing.assert_close(one["losses"][:shared], again[0]["losses"][:shared], rtol=1e-4, atol=1e-5)


def test_instances_with_their_own_caches_use_the_code_of_the_first(instances, tmp_path):
    one, other = trained(instances, caches=folders(tmp_path, 2))
    assert_equal_instances(one, other)
    assert [tier for _, tier in one["changes"]] == ["compiled"]


def test_if_one_instance_is_fixed_to_the_graph_none_switches_and_all_say_why(instances, tmp_path):
    one, other = trained(instances, caches=folders(tmp_path, 1), calls=6, fixed=(1,))
    assert_equal_instances(one, other)
    assert one["changes"] == []
    (note,) = [text for text in one["notes"] if "All instances stay" in text]
    assert "instance 1 cannot switch to compiled code (its tier is fixed" in note


def test_a_killed_instance_ends_the_others_and_a_new_job_switches(instances, tmp_path):
    caches = folders(tmp_path, 1)
    begun = instances()
    begun.start(train, 2, caches=caches, kill_at=3)
    statuses = begun.statuses()
    assert statuses[1] == -signal.SIGKILL
    assert statuses[0] not in (0, None)
    assert "DistributedError" in begun.log(0)
    one, other = trained(instances, caches=caches)
    assert_equal_instances(one, other)
    assert [tier for _, tier in one["changes"]] == ["compiled"]


@pytest.mark.parametrize("caches", [1, 2], ids=["a common cache", "own caches"])
def test_instances_that_must_run_compiled_code_start_with_the_same(instances, tmp_path, caches):
    one, other = trained(instances, caches=folders(tmp_path, caches), calls=6, tier="compiled")
    assert_equal_instances(one, other)
    assert one["tiers"] == other["tiers"] == ["compiled"]
    assert one["calls"] == 6

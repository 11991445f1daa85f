from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import OptionError
from pilotage.runtime.checkpoints import Checkpoints


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.4), nn.Linear(6, 2))

    def forward(self, x, y):
        output = self.layers(x)
        return output, nn.functional.cross_entropy(output, y)


def batch(step: int):
    generator = torch.Generator().manual_seed(step)
    return torch.randn(16, 4, generator=generator), torch.randint(2, (16,), generator=generator)


def begin(start: int, **options):
    torch.manual_seed(start)
    module = Network()
    optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
    return module, pilotage.training(module, optimizer, tier="graph", broadcast_buffers=False, **options)


@pytest.mark.parametrize(
    "options", [{}, {"replicas": 2, "gradient_accumulation": 2, "seed": 8}], ids=["alone", "replicas"]
)
def test_training_goes_on_as_if_it_had_never_stopped(tmp_path, options, assert_same_state):
    module, step = begin(1, **options)
    losses = []
    for number in range(6):
        losses.append(step(*batch(number))[1])
        if number == 2:
            step.save_checkpoint(tmp_path, number + 1, position={"epoch": 1, "batch": number})

    other, resumed = begin(99, **options)
    resumed.compile(*batch(0))
    found = resumed.restore_checkpoint(tmp_path)
    assert (found.step, found.position) == (3, {"epoch": 1, "batch": 2})
    again = [resumed(*batch(number))[1] for number in range(found.step, 6)]
    assert all(torch.equal(*pair) for pair in zip(losses[3:], again, strict=True))
    assert_same_state(module, other)


def test_right_after_restoring_the_module_shows_what_was_saved(tmp_path):
    module, step = begin(1)
    step(*batch(0))
    step.save_checkpoint(tmp_path, 1)
    saved = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    other, resumed = begin(2)
    resumed.compile(*batch(0))
    resumed.restore_checkpoint(tmp_path)
    assert all(torch.equal(tensor, saved[name]) for name, tensor in other.state_dict().items())


def test_the_last_ones_are_kept_and_a_damaged_one_is_passed_over(tmp_path):
    _, step = begin(1)
    step.compile(*batch(0))
    assert step.restore_checkpoint(tmp_path / "empty") is None
    for number in range(1, 6):
        step(*batch(number))
        step.save_checkpoint(tmp_path, number, keep=3)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [f"checkpoint-{number:08d}-0000.pilotage" for number in (3, 4, 5)]
    last = tmp_path / files[-1]
    last.write_bytes(last.read_bytes().replace(b'"step\\": 5', b'"step\\": 6'))
    (tmp_path / files[1]).write_bytes((tmp_path / files[1]).read_bytes()[:100])
    (tmp_path / f".{files[0]}.half-written").write_bytes(b"")
    assert step.restore_checkpoint(tmp_path).step == 3
    assert not list(tmp_path.glob(".*"))


def test_one_checkpoint_is_too_few():
    with pytest.raises(OptionError, match="At least 2 have to stay"):
        Checkpoints("anywhere", keep=1)

import json

import pytest

from pilotage.porting.scanning import scan_paths
from pilotage.porting.target import Target

TRAINS = """\
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x.to(device)), y.to(device))
    loss.backward()
    optimizer.step()
"""
REFUSED = TRAINS.replace(
    "    optimizer.step()", "    model.weight.register_hook(print)\n    optimizer.step()\n    import apex"
)


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "good.py").write_text(TRAINS)
    (tmp_path / "hooks.py").write_text(REFUSED)
    (tmp_path / "plain.py").write_text("print('nothing to port')\n")
    (tmp_path / "broken.py").write_text("def (:\n")
    return tmp_path


def test_places_are_counted_by_kind(repository):
    scan = scan_paths([repository], [])
    assert [each.path.name for each in scan.files] == ["good.py", "hooks.py", "plain.py"]
    assert (scan.places["backward passes"], scan.places["optimizers"], scan.places["devices by name"]) == (2, 2, 2)
    assert (scan.places["packages for CUDA only"], scan.places["gradient hooks and torch.autograd.grad"]) == (1, 1)


def test_what_cannot_be_read_is_listed_and_the_rest_is_scanned(repository):
    (line,) = scan_paths([repository], [Target.HPU]).unreadable
    assert line.startswith(f"{repository / 'broken.py'}:1:5: ")


def test_the_estimate_counts_what_is_left_by_hand(repository):
    poptorch, hpu = scan_paths([repository], [Target.POPTORCH, Target.HPU]).estimates
    assert (poptorch.refused, poptorch.changed) == (1, 1)
    assert 0.3 < poptorch.automatic < 0.7
    assert (hpu.refused, len(hpu.left)) == (0, 1)
    assert poptorch.automatic < hpu.automatic < 1.0


def test_the_files_to_begin_with_train_and_have_the_least_left_by_hand(repository):
    scan = scan_paths([repository], [Target.POPTORCH])
    assert [each.name for each in scan.begin_with] == ["good.py", "hooks.py"]


def test_an_empty_folder_has_nothing_left_to_do(tmp_path):
    scan = scan_paths([tmp_path], [Target.PILOTAGE])
    assert (scan.files, scan.estimates[0].automatic) == ([], 1.0)


def test_the_scan_as_json_has_every_file_and_target(repository):
    written = json.loads(scan_paths([repository], list(Target)).to_json())
    assert [each["target"] for each in written["targets"]] == ["poptorch", "popdist", "hpu", "pilotage"]
    assert {each["path"] for each in written["files"]} == {
        str(repository / f"{n}.py") for n in ("good", "hooks", "plain")
    }

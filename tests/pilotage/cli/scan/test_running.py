import json

import pytest

from pilotage.cli.main import main

SCRIPT = """\
import torch

model = torch.nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "hooks.py").write_text(SCRIPT + "    model.weight.register_hook(print)\n")
    return tmp_path


def test_a_scan_shows_counts_estimates_and_where_to_begin(folder, capsys):
    assert main(["scan", str(folder), "--to", "hpu", "--to", "poptorch"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("2 files, 19 lines. Files that train: 2.\n")
    assert ".cuda() and .to(device)                          6      2" in printed
    rows = [line.split() for line in printed.splitlines() if line.startswith(("hpu ", "poptorch "))]
    assert [row[:2] for row in rows] == [["hpu", "100%"], ["poptorch", "46%"]]
    assert f"Begin with:\n  {folder / 'train.py'}: 6 places, nothing left to do by hand\n" in printed
    assert f"Left to do by hand:\n{folder / 'hooks.py'}:10:5: refused: " in printed


def test_nothing_is_written_unless_asked_for(folder, tmp_path):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert main(["scan", str(folder)]) == 0
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert main(["scan", str(folder), "--json", str(folder / "scan.json")]) == 0
    assert len(json.loads((folder / "scan.json").read_text())["targets"]) == 4


@pytest.mark.parametrize("arguments", [["missing"], [".", "--json", "file/scan.json"]])
def test_what_cannot_be_read_or_written_is_one_line(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(["scan", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_an_unknown_target_is_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["scan", ".", "--to", "tpu"])
    assert stopped.value.code == 2

"""``make cosmic``."""

import json
import logging

import pytest

from cosmictagger import demonstration


@pytest.fixture
def pretended(tmp_path, monkeypatch):
    """Training takes a minute; here only the folder at the start and the screen matter."""
    monkeypatch.chdir(tmp_path)
    folder = demonstration.FOLDER
    checkpoint, report = folder / "checkpoints" / "model-240.ckpt", folder / "inference" / "report.json"

    def run(words, *, console):
        assert not console
        log = logging.getLogger("cosmictagger")
        log.setLevel(logging.INFO)
        if words[0] == "mode=inference":
            report.parent.mkdir(parents=True, exist_ok=True)
            found = 0.8 if checkpoint.exists() else 0.1
            names = demonstration.SCORES.values()
            report.write_text(json.dumps({"metrics": dict.fromkeys(names, found)}))
        elif words[-1] == f"run.iterations={demonstration.STEPS - 1}":
            values = {"loss": 2.5, **dict.fromkeys(demonstration.SCORES.values(), 0.5)}
            log.info("test Step 40", extra={"metrics": ("test", 40, values)})
            log.info("a line of the log")
            checkpoint.parent.mkdir(parents=True)
            checkpoint.touch()
        else:
            log.info("Generated 40 of 160 events", extra={"generated": (40, 160)})
        return 0

    monkeypatch.setattr(demonstration, "run", run)


def test_the_demonstration_starts_over_each_time(pretended, capsys):
    assert [demonstration.main() for _ in range(2)] == [0, 0]
    said = capsys.readouterr().out
    assert said.count("  cosmic IoU                      0.100       0.800  ████████████████████████") == 2
    assert said.count("  neutrino IoU                    0.100       0.800") == 2


def test_the_screen_shows_progress_and_not_the_log(pretended, capsys):
    demonstration.main()
    said = capsys.readouterr().out
    assert "40 of 160 events drawn" in said
    assert "    40    2.500        0.500          0.500" in said
    assert "a line of the log" not in said
    assert len(said.splitlines()) < 40

"""``make cosmic``."""

import json

from cosmictagger import demonstration


def test_the_demonstration_starts_over_each_time(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    checkpoint = demonstration.FOLDER / "checkpoints" / "model-240.ckpt"
    report = demonstration.FOLDER / "inference" / "report.json"

    def run(words):
        """Training takes two minutes; only the folder at the start matters here."""
        if words[0] == "mode=inference":
            report.parent.mkdir(parents=True, exist_ok=True)
            found = 0.8 if checkpoint.exists() else 0.1
            report.write_text(json.dumps({"metrics": {"Average/Cosmic_IoU": found}}))
        elif words[-1] == f"run.iterations={demonstration.STEPS - 1}":
            checkpoint.parent.mkdir(parents=True)
            checkpoint.touch()
        return 0

    monkeypatch.setattr(demonstration, "run", run)
    assert [demonstration.main() for _ in range(2)] == [0, 0]
    assert capsys.readouterr().out.count("0.100 after one step, 0.800 after 240") == 2

import subprocess
import sys

from pilotage.proof.injection import sitecustomize
from pilotage.proof.running import watched_environment
from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.start import start


def test_without_the_variable_nothing_is_watched(monkeypatch):
    monkeypatch.delenv("PILOTAGE_PROOF", raising=False)
    before = list(sys.meta_path)
    start()
    assert sys.meta_path == before
    assert sitecustomize.__name__ != "sitecustomize"


def test_a_watched_process_imports_no_torch_by_itself_and_runs_the_users_own_customization(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text("print('my own')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    settings = WatchSettings(folder=str(tmp_path / "record"))
    program = "import random, sys; print('torch' in sys.modules, random.random())"
    done = [
        subprocess.run(
            [sys.executable, "-c", program],
            env=watched_environment(settings),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert done[0].startswith("my own\nFalse 0.")
    assert done[0] == done[1]

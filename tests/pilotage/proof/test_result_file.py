"""Result files; `test_screen.py` tests what they hold of a proof."""

import json
import sys
from pathlib import Path

import pytest

from pilotage.proof.proof import Request
from pilotage.proof.result_file import _scripts, read_request


def test_a_result_file_tells_other_versions_of_the_scripts(tmp_path):
    script = tmp_path / "port.py"
    script.write_text("first")
    request = Request(before=None, after=("python", str(script), "lost.py", "--rate", "0.1"))
    first = _scripts(request)
    script.write_text("second")
    second = _scripts(request)
    assert [*first] == [*second] == [str(script)]
    assert first != second


@pytest.mark.parametrize(
    ("command", "repeated"),
    [
        ("/elsewhere/bin/python3.11", sys.executable),
        ("/elsewhere/bin/poprun", str(Path(sys.executable).parent / "poprun")),
        ("/usr/bin/mpirun", "/usr/bin/mpirun"),
        ("python", "python"),
    ],
)
def test_a_result_of_another_environment_is_repeated_in_this_one(tmp_path, command, repeated):
    wanted = {"before": [command, "a.py"], "after": ["b"], "steps": 9, "seed": 3, "timeout": 5.0, "align": True}
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"request": {**wanted, "interpreter": "/elsewhere/bin/python"}}))
    assert read_request(path).before == (repeated, "a.py")

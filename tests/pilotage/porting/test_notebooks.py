import ast
import json
from pathlib import Path

import pytest

from pilotage.errors import PortingError
from pilotage.porting.driver import port_texts
from pilotage.porting.finding import Finding, Severity
from pilotage.porting.notebooks import in_cell, read_notebook
from pilotage.porting.target import Target

PATH = Path("train.ipynb")


def notebook(*cells, indent=1):
    """The text of a notebook; a cell that begins with # is text, not code."""
    made = [
        {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}
        if text.startswith("# ")
        else {
            "cell_type": "code",
            "execution_count": 7,
            "metadata": {},
            "outputs": [{"name": "stdout", "output_type": "stream", "text": ["old\n"]}],
            "source": text.splitlines(keepends=True),
        }
        for text in cells
    ]
    return json.dumps({"cells": made, "metadata": {"x": "é"}, "nbformat": 4, "nbformat_minor": 5}, indent=indent) + "\n"


def sources(text):
    return ["".join(each["source"]) for each in json.loads(text)["cells"]]


def test_code_cells_become_one_script_that_is_python():
    text = notebook("# Title", "%matplotlib inline\nimport torch", "!ls\nfiles = !ls -l \\\n    data\nx = 1", "x?")
    source = read_notebook(PATH, text).source
    assert [ast.unparse(each) for each in ast.parse(source).body] == ["import torch", "x = 1"]


def test_cells_of_another_language_are_left_out():
    source = read_notebook(PATH, notebook("%%bash\necho $((1 + 1", "%%time\nx = 1")).source
    assert [ast.unparse(each) for each in ast.parse(source).body] == ["x = 1"]


@pytest.mark.parametrize("cells", [("x = 1", "# Text", "%time y = 2\n\n", "if x:\n    !ls\n    pass"), ()])
def test_the_same_code_gives_the_same_notebook(cells):
    read = read_notebook(PATH, notebook(*cells))
    assert json.loads(read.replaced(read.source)) == json.loads(notebook(*cells))


def test_only_changed_cells_lose_their_outputs_and_the_layout_stays():
    read = read_notebook(PATH, notebook("x = 1", "%pip list\ny = 2", indent=2))
    after = read.replaced(read.source.replace("y = 2", "y = 3\nz = 4"))
    assert sources(after) == ["x = 1", "%pip list\ny = 3\nz = 4"]
    first, second = json.loads(after)["cells"]
    assert (first["outputs"] != [], second["outputs"], second["execution_count"]) == (True, [], None)
    assert after.startswith('{\n  "cells"')


def test_code_before_the_first_cell_goes_into_it():
    read = read_notebook(PATH, notebook("# Title", "x = 1"))
    assert sources(read.replaced("import os\n" + read.source)) == ["# Title", "import os\nx = 1"]


def test_a_finding_names_its_cell_and_the_line_in_it():
    read = read_notebook(PATH, notebook("x = 1", "# Text", "y = 2\nz = 3"))
    line = read.source.splitlines().index("z = 3") + 1
    finding = Finding(rule="r", severity=Severity.REFUSED, path="train.ipynb", line=line, column=5, message="No.")
    assert in_cell(finding, read).where == "train.ipynb:cell 2:2:5"
    assert in_cell(finding, None) is finding


def test_a_notebook_is_ported_cell_by_cell():
    text = notebook("import torch", "# Where\n", 'device = torch.device("cuda")', "loss.backward()\noptimizer.step()")
    (file,) = port_texts({PATH: text}, Target.HPU).files
    assert sources(file.after)[2:] == [
        'device = torch.device("hpu")',
        "loss.backward()\nhtcore.mark_step()\noptimizer.step()\nhtcore.mark_step()",
    ]
    assert file.before == text


@pytest.mark.parametrize(
    ("text", "said"), [("{", "not a notebook"), ("[]", "format 4"), ('{"worksheets": []}', "format 4")]
)
def test_a_file_that_is_not_a_notebook_is_refused_in_one_line(text, said):
    with pytest.raises(PortingError, match=said) as refused:
        read_notebook(PATH, text)
    assert "\n" not in str(refused.value)

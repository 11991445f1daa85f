from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import torch
from torch.fx import symbolic_trace

import pilotage
from pilotage.program.graphs import source_lines as location
from pilotage.program.graphs.source_lines import called_from, is_users, leaving_out, raised_at, users_line


def test_files_of_torch_and_pilotage_are_not_user_code():
    packages = Path(torch.__file__).parent.parent
    assert not is_users(torch.nn.functional.__file__)
    assert not is_users(pilotage.errors.__file__)
    assert not is_users("<eval_with_key>.0")
    assert not is_users("<frozen importlib._bootstrap>")
    assert is_users(str(packages / "torchvision" / "models.py"))
    assert is_users(numpy.__file__)
    assert is_users(__file__)


def test_the_innermost_line_of_user_code_is_named(line_of):
    def through_torch():
        torch.nn.Linear(2, 3)(torch.ones(5))  # through torch

    with pytest.raises(RuntimeError) as caught:
        through_torch()
    line = users_line(caught.value.__traceback__)
    assert f"{line.file}:{line.number}" == line_of("through torch")
    assert line.function == "through_torch"
    assert raised_at(caught.value.__traceback__) == f"\n  at {line}"
    assert str(line).endswith("in through_torch: torch.nn.Linear(2, 3)(torch.ones(5))  # through torch")


def test_without_a_user_line_the_suffix_is_empty():
    assert users_line(None) is None
    assert raised_at(None) == ""


def test_the_current_line_is_found(line_of):
    said = called_from()  # running
    assert f"at {line_of('running')} in test_the_current_line_is_found" in said


def test_an_operation_of_a_graph_knows_its_line():
    graph = symbolic_trace(lambda x: x + 1)
    node = next(node for node in graph.graph.nodes if node.op == "call_function")
    assert location.line_of(node) is None
    inner, outer = f'File "{torch.__file__}", line 3, in f', 'File "/home/user/model.py", line 17, in forward'
    node.meta["stack_trace"] = f"  {outer}\n    return x + 1\n  {inner}\n    y"
    assert location.line_of(node) == "/home/user/model.py:17"


def test_files_can_be_excluded():
    with leaving_out(["no_such_file"]):
        assert is_users(__file__)
        with leaving_out(["test_source_lines"]):
            assert not is_users(__file__)
            assert "test_source_lines" not in called_from()
            assert is_users(numpy.__file__)
        assert is_users(__file__)

"""Descriptions of errors of the compiler."""

from __future__ import annotations

import pytest
import torch
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.compiler.failures import described


def raised(action):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        action()
    return caught.value


def lowered(node):
    """Stands for a lowering of Inductor with an assertion, which pytest would give a text."""
    if node is not None:
        raise AssertionError


def lower_all(graph: GraphModule):
    for node in graph.graph.nodes:
        if node.op == "call_function":
            lowered(node)


def test_an_assertion_without_a_text_is_described_by_its_frames_its_line_and_the_operation():
    graph = make_fx(lambda x: x.tanh() + 1)(torch.ones(2))
    text = described(raised(lambda: lower_all(graph)))
    assert text.startswith("AssertionError, raised in ")
    assert " lower_all > " in text
    assert "test_failures.py:" in text
    assert "(raise AssertionError)" in text
    assert text.endswith("at the operation aten.tanh.default")


def test_an_error_with_a_text_is_described_by_its_first_line():
    error = RuntimeError("\n  sizes do not match\nand more")
    assert described(error) == "RuntimeError: sizes do not match"


@pytest.mark.parametrize(
    "text", ["AssertionError: \n  target: aten.cat.default\n  args[0]: x", "AssertionError:\n target: aten.cat.default"]
)
def test_a_nested_error_without_a_text_is_described_by_its_frames_and_inductors_own_line(text):
    class InductorError(RuntimeError):
        pass

    def fail():
        raise InductorError(f"LoweringException: {text}")

    found = described(raised(fail))
    assert found.startswith("InductorError: LoweringException: AssertionError, raised in ")
    assert found.endswith("at the operation aten.cat.default")


def test_an_error_that_was_never_raised_is_described_by_its_type():
    assert described(AssertionError()) == "AssertionError"

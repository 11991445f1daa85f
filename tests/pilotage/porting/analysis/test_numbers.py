from __future__ import annotations

import ast

import pytest

from pilotage.porting.analysis.numbers import is_random_number, single_constant

TEXT = """
import random
import numpy as np

def draw(alpha):
    return np.random.beta(alpha, alpha) if alpha > 0 else 1

def scaled(x, factor=0.5):
    return x * factor

number = {value}
scaled(3)
use(number)
"""


def use(project, value):
    made = project(script=TEXT.format(value=value))
    (source,) = made.sources
    (call,) = [each for each in source.nodes if isinstance(each, ast.Call) and ast.unparse(each.func) == "use"]
    return made, source, call.args[0]


@pytest.mark.parametrize("value", ["random.random()", "np.random.beta(1.0, 1.0)", "draw(0.2)", "random.uniform(0, 1)"])
def test_numbers_that_are_drawn_are_recognised_through_functions(project, value):
    assert is_random_number(*use(project, value))


@pytest.mark.parametrize("value", ["1.0", "np.random.rand(4)", "np.random.normal(0, 1, 5)", "torch.rand(1)", "other"])
def test_arrays_tensors_and_constants_are_not(project, value):
    assert not is_random_number(*use(project, value))


def test_a_constant_is_known_by_its_text_and_so_is_a_default_that_every_call_leaves(project):
    assert single_constant(*use(project, "2.5")) == "2.5"
    assert single_constant(*use(project, "a if b else 2")) is None
    made, source, _ = use(project, "1")
    (factor,) = [each for each in source.nodes if isinstance(each, ast.Name) and each.id == "factor"]
    assert single_constant(made, source, factor) == "0.5"

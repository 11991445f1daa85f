"""The ports among the examples are what the command makes today."""

import ast

import pytest

from tools.port_examples import PORTS, STYLES, ports


def test_the_ports_are_current():
    assert {path: path.read_text() for path in ports()} == ports()


def test_no_other_port_is_kept():
    assert {path for path in STYLES.rglob("*.py") if "after" in str(path.relative_to(STYLES))} == set(ports())


@pytest.mark.parametrize("place", [after for _, _, after in PORTS])
def test_a_port_is_python_and_uses_its_target(place):
    texts = [text for path, text in ports().items() if path.is_relative_to(STYLES / place)]
    assert texts
    for text in texts:
        ast.parse(text)
    names = {"poptorch": "poptorch.trainingModel(", "pilotage": "pilotage.training(", "hpu": "htcore.mark_step()"}
    assert names[place.removesuffix(".py").rpartition("_")[2]] in "".join(texts)

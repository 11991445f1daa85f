"""Messages at this door speak of pilotage: never of PopTorch, its names or its options."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[3] / "src"
DOORS = ("pilotage", "pilotage.door", "pilotage.integrations.transformers")

FOREIGN = re.compile(
    r"poptorch|popart|poplar|deviceIterations|gradientAccumulation|replicationFactor|broadcastBuffers|outputMode|"
    r"trainingModel|inferenceModel|setOptimizer|copyWeightsTo|detachFromDevice|isCompiled|identity_loss|beginBlock",
    re.IGNORECASE,
)

NO_MESSAGES = {
    "pilotage.arrival.obstacles": {"poptorch::print_tensor"},
    "pilotage.storage.allowed_operations": {
        "poptorch::ctc_beam_search",
        "poptorch::farthest_points",
        "poptorch::print_tensor",
    },
    "pilotage.distributed.launcher.commands": {"POPTORCH_", "POPART_", "POPLAR_"},
}
"""Names of operations and variables."""

ONLY_FROM_DROP_INS = {"pilotage.capture.loss.called"}
"""What the door cannot reach: the rule by which PopTorch finds the loss."""

DESCRIPTIONS = {"pilotage.options.environment"}
"""The meanings of environment variables, for a table in the documents."""


def file_of(module: str) -> Path | None:
    path = SOURCES / Path(*module.split("."))
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each.exists()), None)


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


def reachable() -> dict[str, ast.Module]:
    """The modules that the doors import, directly or not, also inside of functions."""
    waiting, found = list(DOORS), {}
    while waiting:
        module = waiting.pop()
        path = file_of(module) if module.startswith("pilotage") else None
        if path is None or module in found:
            continue
        found[module] = ast.parse(path.read_text())
        waiting += imported(found[module])
    return found


MODULES = reachable()


def texts(tree: ast.Module) -> Iterator[str]:
    """All strings of a module except docstrings, wherever they stand."""
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


def test_the_modules_behind_the_door_are_found():
    assert len(MODULES) > 150
    assert {"pilotage.capture.capture", "pilotage.runtime.executor", "pilotage.devices.cpu"} <= MODULES.keys()
    assert not [name for name in MODULES if name.startswith(("pilotage.porting", "pilotage.cli"))]


@pytest.mark.parametrize("module", sorted(MODULES.keys() - ONLY_FROM_DROP_INS - DESCRIPTIONS))
def test_no_message_mentions_poptorch(module):
    found = {text for text in texts(MODULES[module]) if FOREIGN.search(text)}
    assert found == NO_MESSAGES.get(module, set())


def test_the_rule_of_poptorch_cannot_be_chosen_at_this_door():
    for name in MODULES:
        if name.startswith(("pilotage.door", "pilotage.integrations")):
            assert "loss_rule" not in (file_of(name) or Path()).read_text()

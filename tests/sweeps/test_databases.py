"""torch's databases of operations and modules: equal to eager PyTorch through PopTorch's wrappers."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from sweep.document import PAGE, page, read_results
from sweep.entries import entries
from sweep.exceptions import Exceptions
from sweep.measures import Measure, sweep

from pilotage.capture.functions.refusals import ADVICE

# The samples provoke torch's warnings on purpose.
pytestmark = pytest.mark.filterwarnings("ignore")

EXCEPTIONS = Exceptions.read()
PARTS = {
    (Measure.INFERENCE, "operation"): 12,
    (Measure.INFERENCE, "module"): 6,
    (Measure.HALF, "operation"): 1,
    (Measure.HALF, "module"): 1,
    (Measure.GRADIENTS, "operation"): 8,
    (Measure.GRADIENTS, "module"): 3,
}
"""The number of tests for each sweep."""


@pytest.fixture
def results() -> dict[str, Any]:
    """What the last complete sweep has written."""
    return read_results()


@pytest.fixture
def parts_found(tmp_path_factory) -> Path:
    """The folder where all test processes collect the results of the parts."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "parts-of-sweeps"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("measure", [Measure.INFERENCE, Measure.GRADIENTS], ids=lambda measure: measure.value)
@pytest.mark.parametrize("kind", ["operation", "module"])
def test_a_sample_of_the_entries_is_equal(kind, measure):
    chosen = [entry for entry in entries() if entry.kind == kind]
    if measure is Measure.GRADIENTS:
        chosen = chosen[::4]
    found = sweep(chosen, measure, EXCEPTIONS, all_samples=False)
    assert found.problems(EXCEPTIONS, complete=False) == []
    assert found.numbers(EXCEPTIONS)["samples equal"] > 20


@pytest.mark.long
@pytest.mark.parametrize(
    ("measure", "kind", "part"),
    [
        pytest.param(measure, kind, part, id=f"{kind}s-{measure.value}-{part}")
        for (measure, kind), parts in PARTS.items()
        for part in range(parts)
    ],
)
def test_every_entry_is_equal_and_the_page_says_how_many(measure, kind, part, parts_found, results):
    parts = PARTS[measure, kind]
    chosen = [entry for entry in entries() if entry.kind == kind][part::parts]
    found = sweep(chosen, measure, EXCEPTIONS, all_samples=True)
    assert found.problems(EXCEPTIONS, complete=measure is Measure.INFERENCE) == []
    written = parts_found / f"{kind}-{measure.value}-{part}"
    written.with_suffix(".new").write_text(json.dumps(found.numbers(EXCEPTIONS)))
    written.with_suffix(".new").rename(written)
    files = [parts_found / f"{kind}-{measure.value}-{number}" for number in range(parts)]
    # The last part to finish checks the whole.
    if all(map(Path.exists, files)) and results["torch"] == torch.__version__.partition("+")[0]:
        numbers = Counter()
        for file in files:
            numbers.update(json.loads(file.read_text()))
        assert _settled(numbers) == _settled(results["numbers"][f"{kind}s, {measure.value}"])


def _settled(numbers):
    """The alignment of tensors affects the last bit of some linear algebra kernels: equal once, close another time."""
    rest = {name: number for name, number in numbers.items() if name not in ("samples equal", "samples close")}
    return {**rest, "samples right": numbers["samples equal"] + numbers["samples close"]}


def test_the_page_matches_the_numbers_and_exceptions(results):
    assert PAGE.read_text(encoding="utf-8") == page(results, EXCEPTIONS, ADVICE)


def test_at_least_95_percent_of_all_entries_in_scope_are_equal_and_none_is_wrong(results):
    for name, numbers in results["numbers"].items():
        assert numbers["entries equal"] >= 0.95 * numbers["entries in scope"], name
        assert numbers["samples wrong"] == 0, name


@pytest.mark.slow
def test_every_entry_has_at_most_one_exception(results):
    named = [known.entry for known in EXCEPTIONS.known]
    assert len(named) == len(set(named))
    if results["torch"] == torch.__version__.partition("+")[0]:
        assert set(named) <= {entry.name for entry in entries()}

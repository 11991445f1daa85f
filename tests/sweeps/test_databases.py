"""torch's own databases of operations and modules: equal to eager PyTorch through PopTorch's wrappers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sweep.document import PAGE, RESULTS, page, read_results
from sweep.entries import entries
from sweep.exceptions import Exceptions
from sweep.measures import Measure, Tally, sweep

from pilotage.program.refusals import ADVICE

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
"""Into how many tests each sweep is cut."""


@pytest.fixture
def results() -> dict[str, Any]:
    """What the last complete sweep has written."""
    if not RESULTS.exists():
        pytest.skip("the complete sweep, `python tests/sweeps`, has not written its results yet")
    return read_results()


@pytest.fixture(scope="module")
def tallies() -> dict[tuple[Measure, str], dict[int, Tally]]:
    """What the complete sweeps below have found."""
    return {key: {} for key in PARTS}


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
def test_every_entry_is_equal(measure, kind, part, tallies):
    chosen = [entry for entry in entries() if entry.kind == kind][part :: PARTS[measure, kind]]
    found = sweep(chosen, measure, EXCEPTIONS, all_samples=True)
    tallies[measure, kind][part] = found
    assert found.problems(EXCEPTIONS, complete=measure is Measure.INFERENCE) == []


@pytest.mark.long
def test_the_numbers_on_the_page_are_those_of_the_sweep(tallies, results):
    if any(len(tallies[key]) != parts for key, parts in PARTS.items()):
        pytest.skip("needs all parts of the sweep")
    if results["torch"] != torch.__version__.partition("+")[0]:
        pytest.skip(f"the page was written with torch {results['torch']}")
    for (measure, kind), parts in tallies.items():
        whole = Tally()
        for part in parts.values():
            whole.add(part)
        assert _settled(whole.numbers(EXCEPTIONS)) == _settled(results["numbers"][f"{kind}s, {measure.value}"])


def _settled(numbers):
    """Where tensors come to lie decides over the last bit of a few linear-algebra kernels: equal in one run, close in another."""
    rest = {name: number for name, number in numbers.items() if name not in ("samples equal", "samples close")}
    return {**rest, "samples right": numbers["samples equal"] + numbers["samples close"]}


def test_the_page_is_the_one_that_the_numbers_and_exceptions_make(results):
    assert PAGE.read_text(encoding="utf-8") == page(results, EXCEPTIONS, ADVICE)


def test_at_least_95_percent_of_all_entries_in_scope_are_equal_and_none_is_wrong(results):
    for name, numbers in results["numbers"].items():
        assert numbers["entries equal"] >= 0.95 * numbers["entries in scope"], name
        assert numbers["samples wrong"] == 0, name


@pytest.mark.slow
def test_every_exception_is_about_an_entry_of_its_own(results):
    named = [known.entry for known in EXCEPTIONS.known]
    assert len(named) == len(set(named))
    if results["torch"] == torch.__version__.partition("+")[0]:
        assert set(named) <= {entry.name for entry in entries()}

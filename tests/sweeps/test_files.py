"""Programs of torch's databases can be read from an untrusted file."""

from __future__ import annotations

import json

import pytest
from sweep.cases import Inference, Training
from sweep.comparing import _options
from sweep.entries import entries, no_seed_setter
from sweep.measures import Measure

import poptorch
from pilotage.errors import ProgramFileError
from pilotage.storage.allowed_operations import REASONS
from pilotage.storage.permission import UNTRUSTED
from pilotage.storage.program_check import check_program
from pilotage.storage.program_text import program_from_data, program_to_data

# The samples provoke torch's warnings on purpose.
pytestmark = pytest.mark.filterwarnings("ignore")

PARTS = 8
KNOWN = (
    # The samples of embedding_bag keep their offsets as buffers; users pass them to forward.
    "whose kernel uses offsets without a check",
    # linear_cross_entropy of torch 2.13 calls operations of its own library, and some with out=.
    "its variant with out= may resize",
    "calls torch_nn::_linear_cross_entropy",
)


def refused(measure: Measure, part: int, parts: int) -> tuple[int, list[str]]:
    """How many programs were read from plain data, and the unknown errors of those that were not."""
    read, errors = 0, []
    with no_seed_setter():
        cases = [case for entry in list(entries())[part::parts] for case in measure.sample(entry)]
        for case in cases:
            program = captured(case, measure)
            if program is None:
                continue
            data, constants = program_to_data(program)
            try:
                again = program_from_data(json.loads(json.dumps(data)), constants)
                check_program(again, UNTRUSTED)
                read += 1
            except ProgramFileError as error:
                if not is_known(str(error)):
                    errors.append(f"{case}: {error}")
    return read, errors


def captured(case, measure: Measure):
    """The program of a case, or None."""
    try:
        if measure is Measure.INFERENCE:
            module = Inference([case])
            model, inputs = poptorch.inferenceModel(module, _options([case])), module.inputs()
        else:
            module = Training([case])
            if module() is None:
                return None
            model = poptorch.trainingModel(module, _options([case]), poptorch.optim.SGD(module.parameters(), lr=1.0))
            inputs = ()
        model.compile(*inputs)
    except Exception:
        return None
    program = model.engine.session.captured
    model.destroy()
    return program


def is_known(error: str) -> bool:
    return any(text in error for text in KNOWN) or any(
        f"calls aten::{name}, which a file may not do" in error for name in REASONS
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "measure",
    [Measure.INFERENCE, pytest.param(Measure.GRADIENTS, marks=pytest.mark.long)],
    ids=lambda measure: measure.value,
)
def test_a_sample_of_programs_is_read(measure):
    read, errors = refused(measure, 3, 40)
    assert errors == []
    assert read > 5


@pytest.mark.long
@pytest.mark.parametrize("measure", [Measure.INFERENCE, Measure.GRADIENTS], ids=lambda measure: measure.value)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_program_is_read(measure, part):
    read, errors = refused(measure, part, PARTS)
    assert errors == []
    assert read > 30

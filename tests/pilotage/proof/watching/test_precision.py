import sys

import pytest
import torch

from pilotage.proof.watching.precision import PrecisionWatch, _device_in, _is_discarded


def place():
    """The code and the place from which this function is called."""
    frame = sys._getframe(1)
    return frame.f_code, frame.f_lasti


def test_a_result_that_is_kept_is_not_discarded():
    assert not _is_discarded(*place())
    found = place()
    assert not _is_discarded(*found)


def test_a_result_that_is_thrown_away_is_discarded():
    seen = []

    def call():
        seen.append(place_of_caller())

    def place_of_caller():
        frame = sys._getframe(2)
        return frame.f_code, frame.f_lasti

    call()
    assert _is_discarded(*seen[0])


@pytest.mark.parametrize(
    ("given", "device"), [([torch.float16], None), (["cuda:1"], "cuda"), ([torch.device("cpu")], "cpu"), ([], None)]
)
def test_the_device_of_a_move_is_found_among_its_arguments(given, device):
    assert _device_in(given) == device


def test_a_cast_of_a_module_is_noted_with_its_line(line_of):
    notes = []

    class Watch:
        is_in_program = False

        def note(self, event, /, **fields):
            notes.append((event, fields["what"], fields["type"], fields["line"]))

    cast = PrecisionWatch(Watch())._asked("half", torch.nn.Module.half)
    cast(torch.nn.Linear(2, 2))  # casts to half
    assert notes == [("asked", "type", "float16", line_of("casts to half"))]

from pilotage.monitoring.cards import find_cards
from pilotage.monitoring.device import Device
from pilotage.monitoring.management_command import CommandError
from pilotage.monitoring.management_library import LibraryError

CARD = Device(id="cuda:0", maker="NVIDIA", name="Card")


class Way:
    """A source of cards that answers or raises."""

    def __init__(self, answer: list[Device] | Exception) -> None:
        self.answer = answer

    def devices(self) -> list[Device]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_the_first_source_that_answers_is_used():
    ways = [Way(LibraryError("pynvml is not installed")), Way([CARD]), Way(CommandError("never asked"))]
    found = find_cards("NVIDIA", ways, 1)
    assert (found.devices, found.note) == ((CARD,), None)


def test_a_machine_without_cards_gets_a_short_note():
    assert find_cards("NVIDIA", [Way(LibraryError("pynvml is not installed"))], 0).note == "NVIDIA: no card."
    assert find_cards("NVIDIA", [Way([])], 0).note == "NVIDIA: no card."


def test_cards_without_details_are_counted_with_the_reasons():
    ways = [Way(LibraryError("pynvml is not installed")), Way(CommandError("nvidia-smi was not found"))]
    found = find_cards("NVIDIA", ways, 2)
    assert found.devices == ()
    assert found.note == ("NVIDIA: 2 cards without details: pynvml is not installed; nvidia-smi was not found.")

from types import ModuleType, SimpleNamespace

import pytest

from pilotage.monitoring.cards import GAUDI, NVIDIA
from pilotage.monitoring.management_command import CommandError
from pilotage.monitoring.management_library import LibraryError, ManagementLibrary

MEMORY = SimpleNamespace(used=2**30, total=2**34)


class Refusal(Exception):
    """The exception of such a library."""


def refuse(*arguments: object) -> None:
    raise Refusal("Not Supported")


def install(monkeypatch, prefix: str, **functions: object) -> ManagementLibrary:
    """Install a fake library with these functions, since there is no card here."""
    module = ModuleType(f"stand_in_for_{prefix}")
    for name, function in {"Init": lambda: None, "Shutdown": lambda: None, **functions}.items():
        setattr(module, f"{prefix}{name}", function)
    monkeypatch.setitem(__import__("sys").modules, module.__name__, module)
    return ManagementLibrary(module.__name__, prefix, "maker", "cuda")


def test_the_answers_of_nvml_are_read(monkeypatch):
    library = install(
        monkeypatch,
        "nvml",
        DeviceGetCount=lambda: 2,
        SystemGetDriverVersion=lambda: b"570.1",
        DeviceGetHandleByIndex=lambda number: number,
        DeviceGetName=lambda card: f"Card {card}",
        DeviceGetUUID=lambda card: f"GPU-{card}",
        DeviceGetMemoryInfo=lambda card: MEMORY,
        DeviceGetUtilizationRates=lambda card: SimpleNamespace(gpu=40, memory=3),
        DeviceGetTemperature=lambda card, sensor: 60 + sensor,
        DeviceGetPowerUsage=lambda card: 350_500,
        DeviceGetClockInfo=lambda card, kind: {1: 1980}[kind],
        DeviceGetComputeRunningProcesses=lambda card: [SimpleNamespace(pid=7 + card)],
    )
    first, second = library.devices()
    assert (first.id, first.name, first.identity, first.driver) == ("cuda:0", "Card 0", "GPU-0", "570.1")
    assert (first.memory_used, first.memory_total, first.utilisation) == (2**30, 2**34, 0.4)
    assert (first.temperature, first.board_temperature, first.power, first.clock) == (60, None, 350.5, 1980)
    assert (second.id, second.pids) == ("cuda:1", {8})


def test_a_card_with_a_missing_value_is_shown(monkeypatch):
    library = install(
        monkeypatch,
        "hlml",
        DeviceGetCount=lambda: 1,
        DeviceGetHandleByIndex=lambda number: number,
        DeviceGetName=refuse,
    )
    (device,) = library.devices()
    assert (device.name, device.memory_used, device.utilisation, device.power) == ("maker", None, None, None)
    assert device.pids == frozenset()


def test_gaudis_library_also_gives_the_boards_temperature(monkeypatch):
    library = install(
        monkeypatch,
        "hlml",
        DeviceGetCount=lambda: 1,
        DeviceGetHandleByIndex=lambda number: number,
        DeviceGetUtilizationRates=lambda card: SimpleNamespace(aip=25, memory=0),
        DeviceGetTemperature=lambda card, sensor: {0: 40, 1: 35}[sensor],
    )
    (device,) = library.devices()
    assert (device.temperature, device.board_temperature, device.utilisation) == (40, 35, 0.25)


@pytest.mark.parametrize("function", ["Init", "DeviceGetCount", "DeviceGetHandleByIndex"])
def test_a_library_that_does_not_answer_does_not_crash(monkeypatch, function):
    answers = {"DeviceGetCount": lambda: 1, "DeviceGetHandleByIndex": lambda number: number}
    library = install(monkeypatch, "nvml", **{**answers, function: refuse})
    with pytest.raises(LibraryError, match="Not Supported"):
        library.devices()


def test_output_of_a_library_is_not_shown(monkeypatch, capsys):
    library = install(monkeypatch, "hlml", Init=lambda: print("Failed to load libhlml"), DeviceGetCount=lambda: 0)
    assert library.devices() == []
    assert capsys.readouterr().out == ""


def test_a_library_that_is_not_installed_is_named():
    with pytest.raises(LibraryError, match="no_such_library is not installed"):
        ManagementLibrary("no_such_library", "nvml", "NVIDIA", "cuda").devices()


@pytest.mark.parametrize("ways", [NVIDIA, GAUDI], ids=["NVIDIA", "Gaudi"])
def test_on_real_cards_the_library_and_the_command_agree(ways):
    library, command = ways
    try:
        by_library, by_command = library.devices(), command.devices()
    except (LibraryError, CommandError) as error:
        pytest.skip(str(error))
    shown = [
        [(each.id, each.name, each.identity, each.memory_total) for each in way] for way in (by_library, by_command)
    ]
    assert shown[0] == shown[1]

"""Which cards replicas and stages of this process use, from those that are present, requested and usable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from pilotage.devices.base import Capabilities
from pilotage.devices.registry import Choice
from pilotage.errors import OptionError
from pilotage.events import Event, Noted
from pilotage.options import environment
from pilotage.options.execution import Execution
from pilotage.passes.stages_on_cards import stages_of
from pilotage.program.program import Program
from pilotage.strategies.replicas.shares import cards_for
from pilotage.strategies.tensor_locations import possible_locations


@dataclass(frozen=True, slots=True)
class Cards:
    """The cards of one program."""

    usable: tuple[torch.device, ...]
    """Those that its stages may use; the backend's own device comes first."""

    of_replicas: tuple[torch.device, ...] = ()
    """Those that its replicas run on; empty if all of them run on the first."""

    def label(self, choice: Choice) -> str:
        """What logs call the cards of the replicas."""
        others = dict.fromkeys(map(str, self.of_replicas[1:]))
        others.pop(str(choice.capabilities.device), None)
        return ", ".join([choice.capabilities.label, *others])


def choose_cards(
    execution: Execution, choice: Choice, *, trains: bool, in_pipeline_group: bool, tell: Callable[[Event], None]
) -> Cards:
    """The cards of a program; raises if the user named cards and the program cannot run on several."""
    usable = _cards_of(choice.capabilities, execution.cards)
    cards = cards_for(usable, execution.batching.replicas)
    if in_pipeline_group or len(cards) < 2:
        return Cards(usable)
    obstacle = _obstacle(execution, choice, trains=trains)
    if obstacle is None:
        return Cards(usable, cards)
    if _are_named(execution.cards):
        raise OptionError(
            f"Replicas on several cards of one process cannot have {obstacle} yet. Name one card, or start an instance "
            "for each."
        )
    tell(Noted(message=f"All replicas are on {choice.capabilities.label}: they have {obstacle}."))
    return Cards(usable)


def is_pipeline(execution: Execution, choice: Choice, cards: Cards, program: Program) -> bool:
    """Whether micro-batches can pass through stages on several cards of this process."""
    return (
        len(cards.usable) > 1 and stages_of(program) > 1 and _obstacle(execution, choice, trains=program.trains) is None
    )


def refuse_on_cards(program: Program, execution: Execution) -> None:
    """Raise for a program that would compute something else on several cards."""
    is_captured = all(computation.graph is not None for computation in program.computations.values())
    if is_captured and program.written_inputs and execution.batching.replicas_per_input > 1:
        raise OptionError(
            "forward writes to its inputs, and several replicas get the same ones. On several cards each would "
            "have its own copy. Clone the input in forward, or set PILOTAGE_CARDS to one card."
        )


def _obstacle(execution: Execution, choice: Choice, *, trains: bool) -> str | None:
    if possible_locations(execution.locations, choice, trains=trains).uses_host:
        return "state or activations that wait on the host"
    if trains and execution.batching.instances > 1 and execution.locations.shared_optimizer is not None:
        return "optimizer state that is divided among instances"
    return None


def _cards_of(backend: Capabilities, names: Sequence[str] | None) -> tuple[torch.device, ...]:
    """The devices named by option or by PILOTAGE_CARDS, else all that the backend sees; its own device comes first."""
    asked_by, names = ("the option cards", names) if names is not None else ("PILOTAGE_CARDS", environment.cards())
    if names is None:
        return backend.devices
    devices = tuple(_device(name, asked_by) for name in names)
    if not devices or devices[0] != backend.device or {device.type for device in devices} != {backend.device.type}:
        raise OptionError(
            f"{asked_by} says {', '.join(names) or 'nothing'}. It must name devices of the {backend.name} backend, "
            f"{backend.device} first. CUDA_VISIBLE_DEVICES decides which cards have these numbers."
        )
    there = {*backend.devices}
    for device in devices:
        if device not in there:
            raise OptionError(
                f"{asked_by} names {device}, which does not exist here. Choose among: "
                f"{', '.join(map(str, backend.devices))}."
            )
    return devices


def _are_named(names: Sequence[str] | None) -> bool:
    """Whether the user has named devices."""
    return names is not None or environment.cards() is not None


def _device(name: str, asked_by: str) -> torch.device:
    try:
        return torch.device(name)
    except RuntimeError:
        raise OptionError(
            f"{asked_by} names {name!r}, which is not a device. Use names such as 'cuda:0' or 'cpu'."
        ) from None

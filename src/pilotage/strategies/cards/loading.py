"""From a program to one that its local replicas run on several cards."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pilotage.devices.base import Executable
from pilotage.execution.walk import Forgive, WalkedExecutable
from pilotage.passes.moving import moved
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule
from pilotage.strategies.cards.executable import CardsExecutable, CardWork, Summation, WalkedCard
from pilotage.strategies.cards.replicas import share_out
from pilotage.strategies.cards.summation import add_up


def load_on_cards(
    program: Program, schedule: Schedule, forgive: Forgive, replicas: int, cards: Sequence[torch.device]
) -> Executable:
    """Make a program ready whose replicas are shared out to cards, the first of which it was captured for."""
    shares = share_out(schedule, replicas, cards)
    programs = [moved(program, cards[0], share.device) for share in shares]
    walked = [WalkedExecutable(own, share.schedule, forgive) for own, share in zip(programs, shares, strict=True)]
    works: list[CardWork]
    summation: Summation
    if cards[0].type == "cuda":
        from pilotage.strategies.cards.cuda import CudaCard, CudaSummation, streams_of

        streams = streams_of(shares)
        works = [CudaCard(*each) for each in zip(shares, programs, walked, streams, strict=True)]
        summation = CudaSummation(streams)
    else:
        works = [WalkedCard(*each) for each in zip(shares, walked, strict=True)]
        summation = add_up
    return CardsExecutable(program, schedule, shares, works, walked[0], summation)

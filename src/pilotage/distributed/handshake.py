"""Proof that every process of a group belongs to the job.

Gloo connects processes by TCP, and its sockets accept the first connection, even from another user of the host. So
before anything else is exchanged, the processes of each pair ask each other to sign a random challenge with the key of
the job, which only the job's user can read.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from weakref import WeakKeyDictionary, WeakSet

import torch
import torch.distributed as dist
from torch import Tensor

from pilotage.errors import DistributedError
from pilotage.torch_private import device_types

__all__ = ["authenticate", "authenticate_world", "is_authenticated"]

_BYTES = 32
_KEYS: WeakKeyDictionary[dist.ProcessGroup, bytes] = WeakKeyDictionary()
"""The key of each default group of torch.distributed that has one."""

_AUTHENTICATED: WeakSet[dist.ProcessGroup] = WeakSet()


def is_authenticated() -> bool:
    """Whether the processes of the world have proved that they belong to the job."""
    everyone = dist.group.WORLD
    return everyone is not None and everyone in _KEYS and everyone in _AUTHENTICATED


def authenticate_world(key: bytes) -> None:
    """Verify that all processes of the world belong to the job; later groups use the same key."""
    everyone = dist.group.WORLD
    assert everyone is not None
    _KEYS[everyone] = key
    authenticate(everyone)


def authenticate(group: dist.ProcessGroup | None) -> None:
    """Verify once that all processes of a group belong to the job. Collective: all of them must call it.

    Does nothing in a world without a key, for a group without this process, and for groups that carry no CPU tensors:
    the libraries of cards connect in their own ways.
    """
    everyone = dist.group.WORLD
    key = None if everyone is None else _KEYS.get(everyone)
    if key is None or not isinstance(group, dist.ProcessGroup) or group in _AUTHENTICATED:
        return
    if torch.device("cpu") in device_types(group):
        _challenge_all(group, key)
    _AUTHENTICATED.add(group)


def _challenge_all(group: dist.ProcessGroup, key: bytes) -> None:
    me = dist.get_rank()
    others = [process for process in dist.get_process_group_ranks(group) if process != me]
    challenges = {process: secrets.token_bytes(_BYTES) for process in others}
    received_challenges = _exchanged(challenges, group)
    answers = _exchanged({other: _signed(key, group, me, other, received_challenges[other]) for other in others}, group)
    for other in others:
        if not hmac.compare_digest(answers[other], _signed(key, group, other, me, challenges[other])):
            raise DistributedError(
                f"The process that connected as process {other} does not have the key of this job. Another user of "
                "this host may have tried to join the job. Nothing was accepted from it; start the job again."
            )


def _signed(key: bytes, group: dist.ProcessGroup, sender: int, receiver: int, challenge: bytes) -> bytes:
    text = f"{group.group_name} {sender} {receiver} ".encode()
    return hmac.digest(key, text + challenge, "sha256")


def _exchanged(messages: Mapping[int, bytes], group: dist.ProcessGroup) -> dict[int, bytes]:
    """Send each process its message; returns the messages received."""
    received: dict[int, Tensor] = {other: torch.zeros(_BYTES, dtype=torch.uint8) for other in messages}
    sent = [torch.frombuffer(bytearray(message), dtype=torch.uint8) for message in messages.values()]
    waiting = [dist.irecv(tensor, other, group=group) for other, tensor in received.items()]
    waiting += [dist.isend(tensor, other, group=group) for other, tensor in zip(messages, sent, strict=True)]
    for work in waiting:
        if work is not None:
            work.wait()
    return {other: tensor.numpy().tobytes() for other, tensor in received.items()}

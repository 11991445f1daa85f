"""Whether the loss changes when a batch is split, and the line of the operation that makes it change.

One forward pass is recorded, operation by operation. Then it runs four times on other data of the same sizes, without
touching the script's tensors or random numbers: the batch [A, B] of two halves, [A, A], [B, B] and [B, A]. A loss whose
samples do not see each other is a sum over the halves, so that [A, B] and [B, A] together give what [A, A] and [B, B]
give. If it is not, the operation is the first one with a value that depends on both halves and keeps their order: a sum
over the batch depends on both, and does not change when they are exchanged. No dimension is taken for the batch because
of its size. Normalisation over the batch is known to differ in training and keeps the rows of the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from pilotage.proof.watching.splitting.forward_record import Operation, tensors_of
from pilotage.proof.watching.splitting.replay import Replay

__all__ = ["first_dependence"]

_MOST_GUESSES = 8
"""How many ways are tried to take tensors of unknown origin for rows of the batch, or not."""

_WITHOUT_SAMPLES = ("zeros", "ones", "full", "empty", "eye", "arange", "scalar_tensor")
"""Operations that make tensors of known numbers, such as the zeros that a one-hot vector begins with."""


def first_dependence(
    operations: list[Operation],
    batch: list[Tensor],
    root: Tensor,
    module: nn.Module | None = None,
    inputs: Sequence[Tensor] = (),
) -> tuple[str | None, str] | None:
    """The line and the name of the first operation that mixes samples, on the way to a loss that depends on it.

    ``inputs`` are those of the module, which count if the batch is unknown. Operations on weights of the module's batch
    normalisations are batch normalisations, under whatever name.
    """
    state = () if module is None else (*module.parameters(), *module.buffers())
    held = frozenset(value.data_ptr() for value in state)
    given = batch or list(_inputs_of(operations, held))
    rows = [] if batch else _assembled(inputs, given)
    sizes = _sizes_of(rows or given)
    if len(sizes) != 1 or min(sizes) < 2:
        # The tensors do not agree, as when one of them has time in front.
        return None
    normalising = _normalising_weights(module)
    seconds = {value.shape[1] if value.dim() > 1 else 0 for value in rows}
    if len(seconds) == 1 and min(seconds) > 1:
        # Both dimensions agree, and time may be in front: then the second one is that of the batch.
        batched = {id(value): 1 for value in rows}
        if _first_mixture(operations, batched, min(seconds), root, normalising, held) is None:
            return None
    certain = {id(value): 0 for value in rows or batch or _likely_rows(operations, given) if value.dim()}
    operation = _first_mixture(operations, certain, min(sizes), root, normalising, held)
    return None if operation is None else (operation.line, operation.name)


def _first_mixture(
    operations: list[Operation],
    certain: Mapping[int, int],
    size: int,
    root: Tensor,
    normalising: frozenset[int],
    held: frozenset[int],
) -> Operation | None:
    """The operation that mixes the rows of some tensors, in the given dimensions; None if the loss does not depend."""
    found: list[int] = []
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for guessed in _guesses(_uncertain(operations, size, certain, held)):
            taken = {**certain, **guessed}
            try:
                dependence = Replay(operations, size, root, normalising, taken, wide=True).first_dependence()
            except Exception:
                # Some kernels take their own types only.
                dependence = Replay(operations, size, root, normalising, taken, wide=False).first_dependence()
            if dependence is None:
                return None
            found.append(next(number for number, each in enumerate(operations) if each is dependence))
    # A tensor that is taken for rows by mistake mixes samples earlier than the script does.
    return operations[max(found)]


def _assembled(inputs: Sequence[Tensor], outside: Sequence[Tensor]) -> list[Tensor]:
    """Inputs of a module that are rows of samples, although what they were made from is not.

    Such as images that are filled from one list of pixels. A single input may have time in front, and so may a square
    mask; samples and their labels agree.
    """
    found = [value for value in inputs if value.dim() and not value.requires_grad and not _is_square(value)]
    sizes = _sizes_of(found)
    return found if len(found) > 1 and len(sizes) == 1 and not sizes & _sizes_of(outside) else []


def _is_square(value: Tensor) -> bool:
    return value.dim() == 2 and value.shape[0] == value.shape[1]


def _sizes_of(values: Iterable[Tensor]) -> set[int]:
    """The sizes of the first dimensions of tensors."""
    return {value.shape[0] for value in values if value.dim()}


def _normalising_weights(module: nn.Module | None) -> frozenset[int]:
    """The addresses of the weights of all batch normalisations of a module."""
    if module is None:
        return frozenset()
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
    parts = [each for each in module.modules() if isinstance(each, kinds)]
    return frozenset(weight.data_ptr() for each in parts for weight in each.parameters(recurse=False))


def _inputs_of(operations: list[Operation], held: frozenset[int]) -> Iterator[Tensor]:
    """What a forward pass without a loader was given, or has made in between.

    Samples that are picked from a data set by their numbers are given; the data set is not.
    """
    produced = {id(value) for each in operations for value in tensors_of(each.results)}
    numbers = {id(value) for each in operations if _picks(each) for value in tensors_of(each.args[1:])}
    for each in operations:
        given = tensors_of((each.args, each.kwargs))
        if all(id(value) in numbers for value in tensors_of(each.results)) and given:
            continue  # The order of an epoch, from which the numbers of a batch are taken.
        if _picks(each) and id(each.args[0]) not in produced and not each.args[0].requires_grad:
            yield from tensors_of(each.results)
            continue
        if not given and each.name.startswith(_WITHOUT_SAMPLES):
            continue
        for value in given or tensors_of(each.results):
            if not given or (id(value) not in produced and not value.requires_grad and value.data_ptr() not in held):
                yield value


def _picks(operation: Operation) -> bool:
    """Whether an operation takes rows of a tensor by their numbers."""
    if operation.name == "index_select":
        return bool(operation.args[1] == 0)
    if operation.name != "index" or len(operation.args[1]) != 1:
        return False
    (numbers,) = operation.args[1]
    return isinstance(numbers, Tensor) and numbers.dtype is not torch.bool


def _likely_rows(operations: list[Operation], given: list[Tensor]) -> list[Tensor]:
    """Which inputs of a script without a loader are its batch: those from outside, or the larger ones that it makes."""
    made = {id(value) for each in operations if not _picks(each) for value in tensors_of(each.results)}
    outside = [value for value in given if id(value) not in made]
    return outside or [value for value in given if value.dim() > 1] or given


def _uncertain(
    operations: list[Operation], size: int, certain: Mapping[int, int], held: frozenset[int]
) -> dict[int, int]:
    """Tensors of unknown origin with as many rows as the batch: labels of samples, or positions, or a mask."""
    found = {}
    for value in _inputs_of(operations, held):
        if id(value) not in certain and size in value.shape:
            found[id(value)] = value.shape.index(size)
    return found


def _guesses(uncertain: Mapping[int, int]) -> Iterator[dict[int, int]]:
    """Which of them are rows of the batch: all, none, only one of them, all but one."""
    yield dict(uncertain)
    if uncertain:
        yield {}
    if len(uncertain) > 1:
        for key in list(uncertain)[: _MOST_GUESSES // 2]:
            yield {key: uncertain[key]}
            yield {each: dim for each, dim in uncertain.items() if each != key}

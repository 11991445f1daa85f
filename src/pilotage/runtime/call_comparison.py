"""Compares a later call with the one that the program was compiled for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pilotage.errors import InputError
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import Constant, Parsed, Record, Structure, Table, TensorLeaf, split_arguments
from pilotage.program.structure import Sequence as Items


def refuse_difference(
    expected: Structure,
    given: Structure,
    expected_inputs: Sequence[TensorSpec],
    given_inputs: Sequence[TensorSpec],
    names: Sequence[str],
) -> None:
    """Raise with the first argument that differs from the compiled call, and how."""
    advice = " The program is compiled for one kind of call; destroy() lets it be compiled for another."
    for difference in _differences(expected, given, expected_inputs, given_inputs, names):
        raise InputError(difference + advice)


def _differences(
    expected: Structure,
    given: Structure,
    expected_inputs: Sequence[TensorSpec],
    given_inputs: Sequence[TensorSpec],
    names: Sequence[str],
) -> Iterator[str]:
    (positional, named), (given_positional, given_named) = split_arguments(expected), split_arguments(given)
    if len(positional.items) != len(given_positional.items):
        yield (
            f"Number of positional arguments mismatch: expected {len(positional.items)} arguments "
            f"but got {len(given_positional.items)}."
        )
        return
    pairs = _Pairs(expected_inputs, given_inputs)
    for position, (old, new) in enumerate(zip(positional.items, given_positional.items, strict=True)):
        yield from pairs.compare(names[position] if position < len(names) else f"args[{position}]", old, new)
    if named.keys != given_named.keys:
        yield _keys("keyword arguments", named, given_named)
        return
    for key, old, new in zip(named.keys, named.items, given_named.items, strict=True):
        yield from pairs.compare(str(key), old, new)


class _Pairs:
    """Walks two structures side by side, and their tensors with them."""

    def __init__(self, expected: Iterable[TensorSpec], given: Iterable[TensorSpec]) -> None:
        self._expected = iter(expected)
        self._given = iter(given)

    def compare(self, name: str, expected: Structure, given: Structure) -> Iterator[str]:
        match expected, given:
            case TensorLeaf(), TensorLeaf():
                yield from self._tensors(name)
            case Constant(), Constant():
                if type(expected.value) is not type(given.value) or expected != given:
                    yield (
                        f"Value mismatch for {name}: expected {expected.value} but got {given.value}."
                        f"{_advice(expected.value, given.value)}"
                    )
            case Table(), Table() if expected.keys != given.keys:
                yield _keys(name, expected, given)
            case Table(), Table():
                for key, old, new in zip(expected.keys, expected.items, given.items, strict=True):
                    yield from self.compare(f"{name}[{key!r}]", old, new)
            case Record(), Record() if expected.kind is given.kind:
                for field, old, new in zip(expected.keys, expected.items, given.items, strict=True):
                    yield from self.compare(f"{name}.{field}", old, new)
            case Items(), Items() if expected.kind is given.kind:
                if len(expected.items) != len(given.items):
                    yield f"Length mismatch for {name}: expected {len(expected.items)} but got {len(given.items)}."
                    return
                for position, (old, new) in enumerate(zip(expected.items, given.items, strict=True)):
                    yield from self.compare(f"{name}[{position}]", old, new)
            case Parsed(), Parsed() if expected.kind is given.kind and expected.count == given.count:
                for position in range(expected.count):
                    yield from self._tensors(f"{name}<{position}>")
            case _:
                yield f"Type mismatch for {name}: expected {_kind(expected)} but got {_kind(given)}."

    def _tensors(self, name: str) -> Iterator[str]:
        old, new = next(self._expected), next(self._given)
        if old.dtype != new.dtype:
            yield f"Data type mismatch for {name}: expected {old.dtype} but got {new.dtype}."
        if old.shape != new.shape:
            yield (
                f"Shape mismatch for {name}: expected torch.Size({list(old.shape)}) but got "
                f"torch.Size({list(new.shape)})."
            )


def _keys(name: str, expected: Table, given: Table) -> str:
    unexpected = [str(key) for key in given.keys if key not in expected.keys]
    missing = [str(key) for key in expected.keys if key not in given.keys]
    text = f"Keys mismatch for {name}:"
    if unexpected:
        text += f" Unexpected arguments: {', '.join(unexpected)}."
    if missing:
        text += f" Missing arguments: {', '.join(missing)}."
    return text


def _kind(structure: Structure) -> str:
    match structure:
        case TensorLeaf():
            return "torch.Tensor"
        case Constant():
            return type(structure.value).__name__
        case Table():
            return type(structure.template).__name__
        case _:
            return structure.kind.__name__


def _advice(expected: object, given: object) -> str:
    """How to pass a number that changes from call to call."""
    is_number = type(expected) is type(given) and isinstance(given, (int, float)) and not isinstance(given, bool)
    return f" Pass a number that changes from call to call as a tensor: torch.tensor({given})." if is_number else ""

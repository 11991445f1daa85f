"""The layout of a program's state as plain data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from pilotage.program.layout import Counter, ReplicaGroups, Slot, StateLayout, VariableValue
from pilotage.program.specification import TensorSpec
from pilotage.storage.dtypes import dtype_name
from pilotage.storage.plain_data import array, dtype, integer, invalid_value, table, text, texts

_MAXIMUM_DIMENSIONS = 64
_MAXIMUM_BYTES = 1 << 62

_Key = TypeVar("_Key")


def spec_to_data(specification: TensorSpec) -> list[Any]:
    """A specification as plain data."""
    return [specification.shape, specification.stride, dtype_name(specification.dtype)]


def spec_from_data(data: Any) -> TensorSpec:
    """Restore a specification from plain data."""
    shape, stride, kind = array(data, "a specification", 3)
    sizes = tuple(integer(size, "a size", 0) for size in array(shape, "a shape", _MAXIMUM_DIMENSIONS))
    steps = tuple(integer(step, "a stride", 0) for step in array(stride, "strides", _MAXIMUM_DIMENSIONS))
    specification = TensorSpec(sizes, steps, dtype(kind))
    if len(sizes) != len(steps) or max(specification.bytes, storage_bytes(specification)) > _MAXIMUM_BYTES:
        raise invalid_value("a specification", data, "a shape and strides of the same length and a valid size")
    return specification


def storage_bytes(specification: TensorSpec) -> int:
    """The memory of a tensor in bytes, including the gaps of its strides."""
    if 0 in specification.shape:
        return 0
    reach = sum((size - 1) * step for size, step in zip(specification.shape, specification.stride, strict=True))
    return (reach + 1) * specification.dtype.itemsize


def layout_to_data(layout: StateLayout) -> dict[str, Any]:
    """A layout as plain data."""
    return {
        "parameters": [[name, spec_to_data(spec)] for name, spec in layout.parameters.items()],
        "buffers": [[name, spec_to_data(spec)] for name, spec in layout.buffers.items()],
        "trained": layout.trained,
        "slots": [[slot.name, slot.parameter, spec_to_data(spec)] for slot, spec in layout.slots.items()],
        "values": [[value.group, value.name] for value in layout.values],
        "accumulation_type": dtype_name(layout.accumulation_type),
        "counters": [counter.value for counter in layout.counters],
        "groups": {name: groups.of_replica for name, groups in layout.replica_groups.items()},
        "slots_on_host": layout.slots_on_host,
    }


def layout_from_data(data: dict[str, Any]) -> StateLayout:
    """Restore a layout from plain data."""
    parameters = _unique(data["parameters"], lambda name, spec: (text(name, "a parameter"), spec_from_data(spec)))
    buffers = _unique(data["buffers"], lambda name, spec: (text(name, "a buffer"), spec_from_data(spec)))
    on_host = data.get("slots_on_host")
    return StateLayout(
        parameters=parameters,
        buffers=buffers,
        trained=names_among(parameters, data["trained"], "a trained parameter"),
        slots=_unique(data["slots"], lambda *slot: _slot(parameters, *slot)),
        values=tuple(_value(*array(value, "a value", 2)) for value in array(data["values"], "the values")),
        accumulation_type=dtype(data["accumulation_type"]),
        counters=tuple(Counter(counter) for counter in array(data["counters"], "the counters", len(Counter))),
        replica_groups={
            text(name, "a parameter"): _groups(name, copies, parameters)
            for name, copies in table(data["groups"], "the groups of replicas").items()
        },
        slots_on_host=None if on_host is None else integer(on_host, "slots_on_host", 0),
    )


def names_among(known: Collection[str], data: Any, what: str) -> tuple[str, ...]:
    """Names that must be known, each at most once."""
    names = texts(data, what)
    if not set(names) <= set(known) or len(set(names)) != len(names):
        raise invalid_value(what, names, "names of the program, each once")
    return names


def _unique(data: Any, read: Callable[..., tuple[_Key, TensorSpec]]) -> dict[_Key, TensorSpec]:
    entries: Iterable[tuple[_Key, TensorSpec]] = [
        read(*array(entry, "an entry of the layout", 3)) for entry in array(data, "the layout")
    ]
    made = dict(entries)
    if len(made) != len(array(data, "the layout")):
        raise invalid_value("the layout", [str(key) for key, _ in entries], "each name once")
    return made


def _slot(parameters: Mapping[str, TensorSpec], name: Any, parameter: Any, spec: Any) -> tuple[Slot, TensorSpec]:
    if text(parameter, "the parameter of a slot") not in parameters:
        raise invalid_value("the parameter of a slot", parameter, "a parameter of the program")
    return Slot(text(name, "a slot"), parameter), spec_from_data(spec)


def _value(group: Any, name: Any) -> VariableValue:
    return VariableValue(None if group is None else integer(group, "a group", 0), text(name, "a value"))


def _groups(name: str, copies: Any, parameters: Mapping[str, TensorSpec]) -> ReplicaGroups:
    replicas = array(copies, "the groups of replicas")
    if name not in parameters or not replicas:
        raise invalid_value("the groups of replicas", name, "a parameter of the program, and a copy for each replica")
    return ReplicaGroups(tuple(integer(copy, "a copy of a parameter", 0, len(replicas) - 1) for copy in replicas))

"""Small and large changes to the content of a file that keep its container valid, and changes to its bytes."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from hostile import payloads

OPERATIONS = (
    "aten::from_file.default",
    "aten::save.default",
    "aten::_print.default",
    "aten::set_.source_Tensor",
    "aten::resize_.default",
    "aten::as_strided.default",
    "aten::as_strided_.default",
    "aten::_reshape_alias.default",
    "aten::empty.memory_format",
    "aten::full.default",
    "aten::repeat.default",
    "aten::expand.default",
    "aten::constant_pad_nd.default",
    "aten::max_pool2d_with_indices_backward.default",
    "aten::_embedding_bag_backward.default",
    "aten::native_batch_norm.default",
    "aten::native_layer_norm_backward.default",
    "aten::embedding.default",
    "aten::index.Tensor",
    "aten::item.default",
    "aten::add.Tensor",
    "aten::mul.Tensor",
    "aten::mm.default",
    "aten::sum.default",
    "aten::special_legendre_polynomial_p.default",
    "poptorch::call_on_host.default",
    "prim::device.default",
    "load_library::x.y",
    "getitem",
)
NUMBERS = (0, 1, -1, 2, 3, 7, 255, 2**31 - 1, 2**31, 2**40, 2**63 - 1, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308)
VALUES: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: True,
    list,
    dict,
    lambda: {"node": 0},
    lambda: {"node": -1},
    lambda: {"node": 10**6},
    lambda: {"tuple": [{"tuple": []}]},
    lambda: {"dtype": "float64"},
    lambda: {"dtype": "load"},
    lambda: {"device": "cuda:0"},
    lambda: {"device": payloads.TOUCH},
    lambda: {"float": "nan"},
    lambda: {"enum": ["OutputMode", "__class__"]},
    lambda: {"enum": ["__builtins__", "exec"]},
    lambda: {"unknown": 1},
    lambda: nested(50),
    lambda: nested(80),
    lambda: [0] * 100_000,
    lambda: "x" * 100_000,
)


def nested(depth: int) -> Any:
    """Lists in lists."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def mutated(content: dict[str, Any], tensors: dict[str, Tensor], draw: random.Random) -> tuple[dict, dict[str, Tensor]]:
    """The content and tensors of a file with a few changes."""
    content, tensors = copy.deepcopy(content), dict(tensors)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        if draw.random() < 0.12 and tensors:
            _change_tensor(tensors, draw)
        else:
            _change_content(content, draw)
    return content, tensors


def damaged(data: bytes, draw: random.Random) -> bytes:
    """The bytes of a file with a few changes."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8))):
        place, length = draw.randrange(len(changed) or 1), draw.choice((1, 1, 4, 64))
        match draw.randrange(4):
            case 0:
                changed[place : place + length] = bytes(draw.randrange(256) for _ in range(length))
            case 1:
                del changed[place : place + length]
            case 2:
                changed[place:place] = changed[draw.randrange(len(changed) or 1) :][:length]
            case 3:
                del changed[place:]
    return bytes(changed)


def _change_content(content: dict[str, Any], draw: random.Random) -> None:
    places = list(_places(content))
    # Half of the changes hit nodes of the graph, the other half anything, so that everything is hit often enough.
    if draw.random() < 0.5:
        rare = [place for place in places if place[2] < 5]
        places = rare or places
    owner, key, _ = draw.choice(places)
    match draw.randrange(10):
        case 0:
            owner[key] = draw.choice(payloads.ALL)
        case 1:
            owner[key] = draw.choice(NUMBERS)
        case 2:
            owner[key] = draw.choice(VALUES)()
        case 3:
            _remove_or_repeat(owner, key, draw)
        case 4 if isinstance(owner, dict):
            owner[draw.choice(payloads.ALL)] = owner.pop(key)
        case 5:
            owner[key] = copy.deepcopy(draw.choice(places)[0])
        case 6:
            other, other_key, _ = draw.choice(places)
            owner[key] = copy.deepcopy(other[other_key]) if other is not owner else owner[key]
        case 7:
            _change_operation(content, draw)
        case _:
            _nudge(places, draw)


def _nudge(places: list[tuple[Any, Any, int]], draw: random.Random) -> None:
    """Change a number a little, so that the file often stays a program."""
    numbers = [(owner, key) for owner, key, _ in places if type(owner[key]) in (int, float, bool)]
    if numbers:
        owner, key = draw.choice(numbers)
        value = owner[key]
        owner[key] = (
            (not value)
            if isinstance(value, bool)
            else draw.choice((value + 1, value - 1, value * 2, -value, value * 64))
        )


def _change_operation(content: dict[str, Any], draw: random.Random) -> None:
    computations = content.get("program", {}).get("computations") if isinstance(content.get("program"), dict) else None
    if not isinstance(computations, dict) or not computations:
        return
    nodes = draw.choice(list(computations.values()))
    nodes = nodes.get("nodes") if isinstance(nodes, dict) else None
    calls = [each for each in nodes or () if isinstance(each, dict) and each.get("op") == "call_function"]
    if calls:
        draw.choice(calls)["target"] = draw.choice(OPERATIONS)


def _remove_or_repeat(owner: Any, key: Any, draw: random.Random) -> None:
    if isinstance(owner, list) and draw.random() < 0.5:
        owner.insert(key, copy.deepcopy(owner[key]))
    else:
        del owner[key]


def _change_tensor(tensors: dict[str, Tensor], draw: random.Random) -> None:
    name = draw.choice(sorted(tensors))
    tensor = tensors[name]
    match draw.randrange(5):
        case 0:
            del tensors[name]
        case 1:
            tensors[draw.choice(payloads.ALL)] = tensors.pop(name)
        case 2:
            tensors[name] = torch.zeros(
                draw.choice(((), (0,), (1,), (7,), (3, 5), (*tensor.shape, 2))), dtype=tensor.dtype
            )
        case 3:
            tensors[name] = tensor.to(draw.choice((torch.float64, torch.int64, torch.uint8, torch.bool)))
        case 4:
            extreme = (
                draw.choice((float("nan"), 3e38, -3e38)) if tensor.is_floating_point() else draw.choice((-1, 100, 0))
            )
            tensors[name] = (
                torch.full_like(tensor, extreme) if tensor.dtype not in (torch.bool, torch.uint8) else tensor
            )


def _places(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any, int]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(entries):
        yield value, key, depth
        yield from _places(item, depth + 1)

"""Compares torch's database of operations on the emulated device and on the CPU: `python operations.py EVERY [FIRST]`.

Prints, as JSON, how many entries were compared and what differs: all samples, forward and backward, to the last bit.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")

import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

import habana_frameworks.torch.core  # noqa: E402, F401

REFUSED = "the CPU refuses it too"
FACTORIES = ("arange", "linspace", "logspace")
"""Entries that create tensors from numbers, on the CPU unless a device is given."""


def compared(entries: list[Any]) -> tuple[int, dict[str, str]]:
    """The number of entries compared, and by name what differs."""
    count, different = 0, {}
    for entry in entries:
        types = entry.supported_dtypes("cpu")
        kind = next((each for each in (torch.float32, torch.int64) if each in types), None)
        if kind is None:
            continue
        differentiable = entry.supports_autograd and kind.is_floating_point
        samples = entry.sample_inputs("cpu", kind, requires_grad=differentiable)
        found = {difference(entry, sample) for sample in samples} - {REFUSED}
        count += bool(found)
        if problems := found - {None}:
            different[entry.full_name] = min(problems)
    return count, different


def difference(entry: Any, sample: Any) -> str | None:
    """What differs between the devices for one sample; None if nothing does."""
    try:
        expected = results(entry, sample, "cpu")
    except Exception:
        return REFUSED
    try:
        found = results(entry, sample, "hpu")
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    if any(each.device.type != "hpu" for each in found):
        return "not on the device"
    try:
        torch.testing.assert_close([each.cpu() for each in found], expected, rtol=0, atol=0, equal_nan=True)
    except Exception as error:
        return f"{error}".splitlines()[0]
    return None


def results(entry: Any, sample: Any, device: str) -> list[torch.Tensor]:
    """Outputs and gradients of one sample on a device."""
    given = ((sample.input, *sample.args), sample.kwargs)
    args, kwargs = pytree.tree_map_only(
        torch.Tensor, lambda each: each.detach().clone().to(device).requires_grad_(each.requires_grad), given
    )
    args, kwargs = pytree.tree_map_only(
        (str, torch.device), lambda each: device if str(each) == "cpu" else each, (args, kwargs)
    )
    if entry.name in FACTORIES:
        kwargs["device"] = device
    torch.manual_seed(0)
    outputs = tensors(entry(*args, **kwargs))
    wanted = [each for each in tensors((args, kwargs)) if each.requires_grad]
    ends = [each.sum() for each in outputs if each.requires_grad and each.is_floating_point()]
    gradients = torch.autograd.grad(ends, wanted, allow_unused=True) if ends and wanted else ()
    return [each.detach() for each in (*outputs, *gradients) if each is not None]


def tensors(values: Any) -> list[torch.Tensor]:
    """All tensors in nested values."""
    return [each for each in pytree.tree_leaves(values) if isinstance(each, torch.Tensor)]


if __name__ == "__main__":
    torch.set_num_threads(1)
    every, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    print(json.dumps(compared(op_db[first::every])))

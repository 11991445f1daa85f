"""Finds the modules whose graphs lazy mode compiles again."""

from __future__ import annotations

import csv
import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist
from torch import Tensor, nn

from habana_frameworks._emulation import lazy
from habana_frameworks.torch.hpu.metrics import metric_localcontext
from pilotage.engine import tree_leaves

_COLUMNS = ("Step", "Recompiling modules", "New in", "New out", "Class", "Location", "Comment")
_COUNT_COLUMNS = ("Module name", "Recompile count")
_IS_WRAPPED = "_detects_recompilation"
Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Call:
    """One call of a module: what it compiled, and whether its shapes were new."""

    step: int
    name: str
    kind: str
    location: str
    compilations: int
    new_in: bool
    new_out: bool


class _Detector:
    """Follows the calls of a model and its modules."""

    def __init__(self, name: str, wait: float, file: str) -> None:
        self.calls: list[_Call] = []
        self._name, self._wait, self._file = name, wait, file
        self._step = 0
        self._seen: dict[str, tuple[set[Shapes], set[Shapes]]] = {}

    def follow(self, module: nn.Module, path: str) -> None:
        """Measure each call of a module."""
        forward, name = module.forward, ".".join(filter(None, (self._name, path)))

        def measured(*args: Any, **kwargs: Any) -> Any:
            self._settle()
            with metric_localcontext("graph_compilation") as metric:
                result = forward(*args, **kwargs)
                self._settle()
            self._note(name, module, dict(metric.stats())["TotalNumber"], (args, kwargs), result)
            self._step += not path
            return result

        module.forward = measured

    def _settle(self) -> None:
        lazy.mark(inside_a_call=True)
        time.sleep(self._wait)

    def _note(self, name: str, module: nn.Module, compilations: int, given: Any, result: Any) -> None:
        seen_in, seen_out = self._seen.setdefault(name, (set(), set()))
        shapes_in, shapes_out = _shapes(given), _shapes(result)
        call = _Call(
            step=self._step,
            name=name,
            kind=type(module).__name__,
            location=_location(type(module)),
            compilations=compilations,
            new_in=shapes_in not in seen_in,
            new_out=shapes_out not in seen_out,
        )
        seen_in.add(shapes_in)
        seen_out.add(shapes_out)
        self.calls.append(call)

    def raw_logs(self) -> list[str]:
        """Return one line for each call of a module."""
        return [
            f"step {each.step}: {each.name} ({each.kind}) compiled {each.compilations}, new inputs {each.new_in}, "
            f"new outputs {each.new_out}"
            for each in self.calls
        ]

    def analyse_dynamicity(self) -> None:
        """Print which modules compiled in which step and how often, and write both tables as CSV files."""
        found = [each for each in self.calls if each.compilations]
        rows = [
            (each.step, each.name, each.new_in, each.new_out, each.kind, each.location, _comment(each))
            for each in found
        ]
        names = dict.fromkeys(each.name for each in found)
        counts = [(name, sum(each.compilations for each in found if each.name == name)) for name in names]
        _show(_COLUMNS, rows, f"{self._file}_1.csv")
        _show(_COUNT_COLUMNS, counts, f"{self._file}_2.csv")


def detect_recompilation_auto_model(
    model: nn.Module, mdlname: str = "Net", waittime: float = 1, csv_out: str = "out"
) -> nn.Module:
    """Follow which modules of a model make lazy mode compile, and return the model.

    It gains ``raw_logs()`` and ``analyse_dynamicity()``. Each call of a module marks a step before and after and waits
    ``waittime`` seconds, so use it for a few steps only.
    """
    if dist.is_available() and dist.is_initialized():
        raise RuntimeError("detect_recompilation_auto_model works in one process only, without torch.distributed.")
    if hasattr(model, _IS_WRAPPED):
        raise RuntimeError("This model is already being observed. Use detect_recompilation_auto_model once.")
    detector = _Detector(mdlname, waittime, csv_out)
    for path, module in model.named_modules():
        detector.follow(module, path)
    setattr(model, _IS_WRAPPED, True)
    followed: Any = model
    followed.raw_logs, followed.analyse_dynamicity = detector.raw_logs, detector.analyse_dynamicity
    return model


def _shapes(value: Any) -> Shapes:
    return tuple(tuple(each.shape) for each in tree_leaves(value) if isinstance(each, Tensor))


def _location(kind: type) -> str:
    try:
        return f"{inspect.getsourcefile(kind)}:{inspect.getsourcelines(kind)[1]}"
    except (OSError, TypeError):
        return "unknown"


def _comment(call: _Call) -> str:
    if call.new_in:
        return "new shapes of its inputs"
    return "the same inputs make new shapes" if call.new_out else "known shapes"


def _show(columns: Sequence[str], rows: Sequence[Sequence[object]], file: str) -> None:
    print("  ".join(columns))
    for row in rows:
        print("  ".join(map(str, row)))
    with open(file, "w", newline="") as target:
        writer: Callable[..., Any] = csv.writer(target).writerow
        for row in (columns, *rows):
            writer(row)

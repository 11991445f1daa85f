"""Notices what the user changes on a module after it was captured, so that no change is ignored without a word.

A program does not run the module's Python again. So a module whose modes or hooks have changed is captured again, other
parts or parameters are refused in training, and a changed attribute, which forward may or may not read, is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from operator import is_
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from pilotage.capture.model import modes_of
from pilotage.errors import OptionError
from pilotage.events import Listener, Noted, Warned
from pilotage.torch_private import (
    MODULE_CACHES,
    DisableTorchFunctionSubclass,
    backward_hooks,
    post_accumulate_grad_hooks,
)
from pilotage.turns import PROCESS_WIDE

_TORCHS_OWN = frozenset(vars(nn.Module())) | MODULE_CACHES
_CALLED_IN_FORWARD = ("forward_hooks", "forward_pre_hooks", "backward_hooks", "backward_pre_hooks")


class ModuleWatch:
    """Compares a module with what it was when its program was captured.

    A training program runs each part in the mode it has when it is called. An inference program also keeps parts in
    evaluation mode that were in evaluation mode when the module was wrapped: the same module may be trained meanwhile.
    """

    def __init__(self, module: nn.Module, tell: Listener, *, trains: bool) -> None:
        self._module = module
        self._tell = tell
        self._trains = trains
        self._said: set[str] = set()
        self._parts: dict[str, nn.Module] = {}
        self._live: list[dict[str, Any]] = []
        """The attributes of all parts as they are, and below as they were."""
        self._noted: list[dict[str, Any]] = []
        self._tables: list[Mapping[str, Any]] = []
        """The parts, parameters and buffers of all parts, as they are, and below as they were."""
        self._members: list[Any] = []
        self._hooks: dict[str, list[Any]] = {}
        self._hook_count = 0
        self._captured: dict[nn.Module, bool] = {}
        self._hooked: list[tuple[Mapping[int, Any], list[Any]]] = []
        """The tables of hooks that are not empty, with what they held."""
        self._probe: Tensor | None = None
        self._type: torch.dtype | None = None
        self._is_static = True
        self.wrap()

    def wrap(self) -> None:
        """Note the modes that the user wants the program to have."""
        self._wrapped = modes_of(self._module)

    def modes(self) -> dict[nn.Module, bool]:
        """The modes to capture the module in."""
        # While it is captured for another program, the module is in that program's modes.
        with PROCESS_WIDE:
            present = modes_of(self._module)
        if self._trains:
            return present
        return {part: training and self._wrapped.get(part, training) for part, training in present.items()}

    def begin(self, *, is_static: bool) -> None:
        """Note how the module was captured; a program that is not static runs its Python at each call."""
        self._is_static = is_static
        self._captured = self.modes()
        self._parts = dict(self._module.named_modules())
        self._live = [vars(part) for part in self._parts.values()]
        self._noted = [dict(attributes) for attributes in self._live]
        tables = (live[name] for live in self._live for name in ("_parameters", "_buffers", "_modules"))
        self._tables = [table for table in tables if table]
        self._members = self._present_members()
        self._note_hooks()
        floating = (p for p in self._module.parameters() if p.is_floating_point())
        self._probe = next(floating, None)
        self._type = None if self._probe is None else self._probe.dtype

    def needs_capture(self) -> bool:
        """Whether the module has to be captured again; raises for what cannot be followed, warns of what is ignored."""
        if not (self._members_differ() or self._hooks_may_differ() or self._attributes_differ()):
            return False
        # While it is captured for another program, the module has other tensors and modes.
        with PROCESS_WIDE:
            if self._members_differ():
                return self._on_other_members()
            self._hook_count = RemovableHandle.next_id
            if self._hooks != self._present_hooks():
                self._note("Its hooks have changed")
                return True
            return self._attributes_differ() and self._on_other_attributes()

    # Parts, parameters and buffers

    def _present_members(self) -> list[Any]:
        return list(chain.from_iterable([table.values() for table in self._tables]))

    def _members_differ(self) -> bool:
        present = self._present_members()
        if len(present) != len(self._members) or not all(map(is_, present, self._members)):
            return True
        return self._probe is not None and self._probe.dtype != self._type

    def _on_other_members(self) -> bool:
        what = self._other_member()
        if self._trains:
            raise OptionError(
                f"{what} since the module was compiled for training, and its program and optimizer know the old one. "
                "Call destroy() on the wrapped model, and give it an optimizer of the present parameters by "
                "set_optimizer()."
            )
        self._note(what)
        return True

    def _other_member(self) -> str:
        for path, part in self._parts.items():
            for kind in ("_modules", "_parameters", "_buffers"):
                for name, member in vars(part)[kind].items():
                    if not any(member is known for known in self._members):
                        return f"{_joined(path, name)} was added or replaced"
        if len(self._present_members()) != len(self._members):
            return "A part, a parameter or a buffer was removed"
        return f"The weights have become {None if self._probe is None else self._probe.dtype} instead of {self._type}"

    # Hooks

    def _note_hooks(self) -> None:
        self._hook_count = RemovableHandle.next_id
        self._hooks = self._present_hooks()
        self._hooked = [(table, list(table.values())) for _, table in self._hook_tables() if table]

    def _hooks_may_differ(self) -> bool:
        # torch numbers all hooks of a process; that some have gone shows in the tables that had any.
        if RemovableHandle.next_id != self._hook_count:
            return True
        return any(list(table.values()) != noted for table, noted in self._hooked)

    def _present_hooks(self) -> dict[str, list[Any]]:
        return {name: list(table.values()) for name, table in self._hook_tables() if table}

    def _hook_tables(self) -> Iterator[tuple[str, Mapping[int, Any]]]:
        for path, part in self._parts.items():
            for kind in _CALLED_IN_FORWARD:
                yield f"{path} {kind}", vars(part)[f"_{kind}"]
        with DisableTorchFunctionSubclass():
            tables = [
                (f"{name} {number}", kind(parameter))
                for name, parameter in self._module.named_parameters()
                for number, kind in enumerate((backward_hooks, post_accumulate_grad_hooks))
            ]
        yield from ((name, table) for name, table in tables if table)

    # Modes and other attributes

    def _attributes_differ(self) -> bool:
        try:
            return self._live != self._noted
        except Exception:
            # Tensors and arrays, for instance, do not compare to one truth value.
            return True

    def _on_other_attributes(self) -> bool:
        """Whether modes have changed that the program follows; other attributes are reported once each."""
        changed = [
            (path, name)
            for path, live, noted in zip(self._parts, self._live, self._noted, strict=True)
            for name in {**noted, **live}
            if live.get(name, _MISSING) is not noted.get(name, _MISSING)
        ]
        modes = [path for path, name in changed if name == "training"]
        others = [(path, name) for path, name in changed if name not in _TORCHS_OWN] if self._is_static else []
        for path, name in others:
            self._report_attribute(path, name)
        follows = self._on_other_modes(modes) if modes else False
        self._noted = [dict(attributes) for attributes in self._live]
        return follows

    def _report_attribute(self, path: str, name: str) -> None:
        position = list(self._parts).index(path)
        before, after = self._noted[position].get(name, _MISSING), self._live[position].get(name, _MISSING)
        attribute, part = _joined(path, name), type(self._parts[path]).__name__
        if attribute in self._said or before is _MISSING or _equal(before, after):
            return
        self._said.add(attribute)
        self._tell(
            Warned(
                message=f"The attribute '{attribute}' of {part} has changed from {_short(before)} to {_short(after)} "
                "since the program was captured, which has no effect on the program. If forward reads it, pass it as "
                "an argument, keep it in a buffer, or call destroy() on the wrapped model after each change."
            )
        )

    def _on_other_modes(self, paths: list[str]) -> bool:
        modes = self.modes()
        kept = [path for path in paths if self._parts[path].training and not modes[self._parts[path]]]
        if kept and "modes" not in self._said:
            self._said.add("modes")
            self._tell(
                Warned(
                    message=f"{_listed(kept)} was put in training mode after the module was wrapped for inference, "
                    "where it stays in evaluation mode. To infer in training mode, call train() on the wrapped model, "
                    "or wrap the module again."
                )
            )
        followed = [path for path in paths if modes[self._parts[path]] != self._captured[self._parts[path]]]
        if followed:
            mode = "training" if modes[self._parts[followed[0]]] else "evaluation"
            self._note(f"{_listed(followed)} is now in {mode} mode")
        return bool(followed)

    def _note(self, what: str) -> None:
        self._tell(Noted(message=f"{what}: the module is captured again."))


_MISSING = object()


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _listed(paths: list[str]) -> str:
    first = f"'{paths[0]}'" if paths[0] else "The module"
    return f"{first} (and {len(paths) - 1} more)" if len(paths) > 1 else first


def _equal(before: Any, after: Any) -> bool:
    try:
        return bool(before == after)
    except Exception:
        return False


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return "a tensor"
    text = "nothing" if value is _MISSING else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."

"""Detects what the user changes on a module after its capture, so that no change is ignored silently.

A program does not run the module's Python again. So the module is captured again when its modes, hooks or attributes
have changed, which costs time but is right. Other parts or parameters are refused in training, because the optimizer
does not have them.
"""

from __future__ import annotations

from collections import Counter

from torch import nn

from pilotage.capture.model import modes_of
from pilotage.errors import OptionError, ProgramFileError
from pilotage.events import Listener, Noted, Warned
from pilotage.program.program import Program
from pilotage.runtime.following.attributes import Attributes, Changed
from pilotage.runtime.following.quick_look import QuickLook
from pilotage.storage.fingerprint import fingerprint
from pilotage.turns import PROCESS_WIDE

_OFTEN = 4
"""The number of captures for one value after which a notice suggests a faster way."""


class ModuleWatch:
    """Compares a module with its state at the capture of its program.

    A training program runs each part in the mode it has when it is called. An inference program also keeps parts in
    evaluation mode that were in evaluation mode when the module was wrapped: the same module may be trained meanwhile.
    Without ``follows``, a program keeps what the module was when it was wrapped, and nothing is compared.
    """

    def __init__(self, module: nn.Module, tell: Listener, *, trains: bool, follows: bool) -> None:
        self._module = module
        self._tell = tell
        self._trains = trains
        self._follows = follows
        self._wrapped = modes_of(module)
        self._captured: dict[nn.Module, bool] = {}
        self.look: QuickLook | None = None
        """Says quickly whether anything differs; `needs_capture` then finds out what. None if nothing is compared."""
        self._suspects: tuple[list[Changed], Program] | None = None
        """The values for which the module is captured again, and the program from before."""
        self._captures: Counter[str] = Counter()
        self._ignored: set[str] = set()
        """Values that turned out not to change the program."""
        self._is_static = True
        self._said_modes = False

    def wrap(self) -> None:
        """Note the modes that the user wants the program to have."""
        self._wrapped = modes_of(self._module)

    def modes(self) -> dict[nn.Module, bool]:
        """The modes to capture the module in."""
        if not self._follows:
            return self._wrapped
        # During a capture for another program, the module is in that program's modes.
        with PROCESS_WIDE:
            present = modes_of(self._module)
        if self._trains:
            return present
        return {part: training and self._wrapped.get(part, training) for part, training in present.items()}

    def begin(self, program: Program, *, is_static: bool) -> None:
        """Note how the module was captured; a program that is not static runs its Python at each call."""
        if not self._follows:
            return
        self._is_static = is_static
        self._captured = self.modes()
        if self._suspects is not None:
            self._judge(*self._suspects, program)
            self._suspects = None
        with PROCESS_WIDE:
            self.look = QuickLook(self._module)

    def needs_capture(self, program: Program) -> bool:
        """Whether the module has to be captured again; raises for what cannot be followed, warns of what is ignored."""
        if self.look is None:
            return False
        # During a capture for another program, the module has other tensors and modes.
        with PROCESS_WIDE:
            if (difference := self.look.members.difference()) is not None:
                return self._on_other_members(difference)
            if self.look.hooks.differ():
                self._note("Its hooks have changed")
                return True
            return self._on_other_attributes(self.look.attributes, program)

    def _on_other_members(self, difference: str) -> bool:
        if self._trains:
            raise OptionError(
                f"{difference} since the module was compiled for training, and its program and optimizer know only "
                "what it was. Call destroy() on the wrapped model, and give it an optimizer of the present parameters "
                "by set_optimizer()."
            )
        self._note(difference)
        return True

    def _on_other_attributes(self, attributes: Attributes, program: Program) -> bool:
        changed = [each for each in attributes.changed() if each.name not in self._ignored] if self._is_static else []
        modes = attributes.modes()
        attributes.note()
        if changed:
            self._suspects = changed, program
            self._note(f"'{changed[0].name}' of {changed[0].owner} has changed {changed[0].text}")
        follows_modes = bool(modes) and self._on_other_modes(modes)
        return bool(changed) or follows_modes

    def _judge(self, changed: list[Changed], before: Program, after: Program) -> None:
        """Find out whether values that have changed also change the program."""
        if _are_equal(before, after):
            self._ignored |= {each.name for each in changed}
            for each in changed:
                if not each.is_new:
                    self._warn(
                        f"'{each.name}' of {each.owner} has changed {each.text}, which does not change the program. "
                        "Later changes to it are ignored. To have them count, pass the value as an argument, "
                        "or call destroy() on the wrapped model after each change."
                    )
            return
        for each in changed:
            self._captures[each.name] += 1
            if self._captures[each.name] == _OFTEN:
                self._warn(
                    f"'{each.name}' of {each.owner} has changed {_OFTEN} times, and each time the module was captured "
                    "again. It is faster to keep a value that changes often in a buffer, or to pass it as a tensor."
                )

    def _on_other_modes(self, paths: list[str]) -> bool:
        modes, parts = self.modes(), dict(self._module.named_modules())
        kept = [path for path in paths if parts[path].training and not modes[parts[path]]]
        if kept and not self._said_modes:
            self._said_modes = True
            self._warn(
                f"{_listed(kept)} was put in training mode after the module was wrapped for inference, where it stays "
                "in evaluation mode. To infer in training mode, call train() on the wrapped model, or wrap the module "
                "again."
            )
        followed = [path for path in paths if modes[parts[path]] != self._captured[parts[path]]]
        if followed:
            mode = "training" if modes[parts[followed[0]]] else "evaluation"
            self._note(f"{_listed(followed)} is now in {mode} mode")
        return bool(followed)

    def _warn(self, message: str) -> None:
        self._tell(Warned(message=message))

    def _note(self, what: str) -> None:
        self._tell(Noted(message=f"{what}: the module is captured again."))


def _are_equal(before: Program, after: Program) -> bool:
    try:
        return fingerprint(before, {}).digest == fingerprint(after, {}).digest
    except ProgramFileError:
        # It calls something that has no description in a file.
        return False


def _listed(paths: list[str]) -> str:
    first = f"'{paths[0]}'" if paths[0] else "The module"
    return f"{first} (and {len(paths) - 1} more)" if len(paths) > 1 else first

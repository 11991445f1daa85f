"""Files of weights that a script saves: whether they hold what was trained."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.proof.watching.digests import digest_weights
from pilotage.proof.watching.lines import users_line
from pilotage.proof.watching.patching import replace_function
from pilotage.proof.watching.watch import Watch
from pilotage.proof.weights import distance, match_weights

__all__ = ["SaveWatch"]

_DEEPEST = 4


def _content_and_file(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """What is saved, and where: the first two arguments, whatever their names are."""
    named = [kwargs[name] for name in ("obj", "tensors", "f", "file", "filename") if name in kwargs]
    content, target, *_ = (*args, *named, None, None)
    return content, target


def _arrays_and_file(file: Any = None, *arrays: Any, **named: Any) -> tuple[Any, Any]:
    return {**{str(place): each for place, each in enumerate(arrays)}, **named}, file


class SaveWatch:
    """Compares saved weights with those that are being trained at that moment."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._is_saving = False
        self._files: dict[Path, tuple[str, tuple[int, int]]] = {}
        """The line that wrote each file, with its size and time of then."""

    def install(self) -> None:
        """Follow torch.save from now on."""
        replace_function(torch, "save", self._following)
        self._watch.at_end.append(self.look_at_files)

    def follow(self, module: ModuleType, name: str) -> None:
        """Follow another function that writes tensors, given as its first argument."""
        replace_function(module, name, self._following)

    def follow_arrays(self, module: ModuleType) -> None:
        """Follow functions of numpy, which are given the arrays of a file after its name."""
        for name in ("savez", "savez_compressed"):
            replace_function(module, name, lambda original: self._following(original, _arrays_and_file))

    def _following(
        self, original: Callable[..., Any], read: Callable[..., tuple[Any, Any]] = _content_and_file
    ) -> Callable[..., Any]:
        def save(*args: Any, **kwargs: Any) -> Any:
            if not self._is_saving and not self._watch.is_in_program:
                self._is_saving = True
                content, target = read(*args, **kwargs)
                try:
                    line = self.note(content, target)
                    result = original(*args, **kwargs)
                finally:
                    self._is_saving = False
                if line is not None:
                    self._remember(line, target)
                return result
            return original(*args, **kwargs)

        return save

    def _remember(self, line: str, target: Any) -> None:
        if isinstance(target, (str, os.PathLike)):
            path = Path(target).absolute()
            with suppress(OSError):
                self._files[path] = (line, _mark_of(path))

    def look_at_files(self) -> None:
        """At the end of the script: look into files that something else has changed since they were saved."""
        for path, (line, mark) in self._files.items():
            try:
                if _mark_of(path) == mark:
                    continue
                content = torch.load(path, map_location="cpu", weights_only=True)
            except Exception:
                continue  # Removed, or written in another format: not for us to judge.
            kinds = [kind for kind in map(self._kind_of, filter(None, _tables_in(content, _DEEPEST))) if kind]
            if kinds and not {"present", "trained"} & set(kinds):
                self._watch.note("saved", line=line, holds=kinds[0], tensors=0, replaced=True, file=path.name)

    def note(self, content: Any, target: Any = None) -> str | None:
        """Record what kind of weights are saved here: the present ones, the initial ones or others."""
        line = users_line()
        if line is None:
            return None
        tables = [table for table in _tables_in(content, _DEEPEST) if table]
        kinds = [kind for kind in map(self._kind_of, tables) if kind is not None]
        best = next((kind for kind in ("present", "trained", "initial", "other", "early") if kind in kinds), None)
        file = Path(target).name if isinstance(target, (str, os.PathLike)) else None
        self._watch.note("saved", line=line, holds=best, tensors=sum(map(len, tables)), replaced=False, file=file)
        return line if best is not None else None

    def _kind_of(self, table: list[tuple[str, Tensor]]) -> str | None:
        initial = self._watch.initial
        if not initial or self._watch.weights is None:
            if not initial and not _looks_like_weights(table):
                return None
            # Weights that are divided among processes are not digested, so the saved ones are given credit.
            return "trained" if self._watch.updates and not initial else "early"
        saved = digest_weights(table)
        present = digest_weights(self._watch.weights())
        if len(saved) < len(present):
            # A part of the model: others of its tensors may have the same shape.
            pairs = [(left, right) for right, left in match_weights(saved, present)]
        else:
            pairs = match_weights(present, saved)
        if len(pairs) < max(1, len(present) // 2):
            return None
        now = math.sqrt(sum(distance(left, right) ** 2 for left, right in pairs))
        start = {id(each): first for each, first in zip(present, initial, strict=False)}
        moved = math.sqrt(sum(distance(left, start[id(left)]) ** 2 for left, _ in pairs if id(left) in start))
        since = math.sqrt(sum(distance(start[id(left)], right) ** 2 for left, right in pairs if id(left) in start))
        size = math.sqrt(sum(left["norm"] ** 2 for left, _ in pairs))
        if not math.isfinite(size):
            # A training that went wrong, and whose weights are saved as they are.
            is_equal = all(math.isfinite(left["norm"]) == math.isfinite(right["norm"]) for left, right in pairs)
            return "present" if is_equal else "other"
        if now <= 1e-6 * size or now <= 1e-2 * moved:
            return "present"
        if since <= 1e-6 * size or since <= 1e-2 * moved:
            return "initial"
        return "trained" if now <= 1.5 * moved else "other"


def _looks_like_weights(table: list[tuple[str, Tensor]]) -> bool:
    return any(name.endswith(("weight", "bias")) for name, _ in table)


def _mark_of(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _tables_in(content: Any, depth: int) -> list[list[tuple[str, Tensor]]]:
    """Everything in a saved value that may be a state dictionary."""
    if isinstance(content, nn.Module):
        content, depth = content.state_dict(), 1
    if not isinstance(content, dict) or depth == 0:
        return []
    found = ((str(name), _numbers_of(value)) for name, value in content.items())
    own = [(name, tensor) for name, tensor in found if tensor is not None]
    deeper = [table for value in content.values() for table in _tables_in(value, depth - 1)]
    return [own, *deeper]


def _numbers_of(value: Any) -> Tensor | None:
    """A tensor of floating-point numbers, or one that shares the memory of an array; None for all else."""
    if type(value).__module__ == "numpy" and getattr(getattr(value, "dtype", None), "kind", None) == "f":
        with suppress(TypeError, ValueError, RuntimeError):
            value = torch.as_tensor(value)
    return value.detach() if isinstance(value, Tensor) and value.is_floating_point() else None

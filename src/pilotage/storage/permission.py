"""What a program that was read from a file may do."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import torch

from pilotage.errors import ProgramFileError
from pilotage.storage.allowed_operations import ALLOWED, OWN_LIBRARIES, OWN_OPERATIONS, REASONS


@dataclass(frozen=True, kw_only=True, slots=True)
class Permission:
    """What the user allows the program of a file."""

    trusted: bool = False
    """The file is the user's own: any operation, any size. Its form is checked all the same."""

    operations: frozenset[str] = frozenset()
    """Operations that it may call besides those of the allow-list, as ``library::name``."""

    memory: int | None = None
    """How many bytes a step may need; None is as much as the machine has."""

    def check(self, operation: torch._ops.OpOverload) -> None:
        """Raise unless the program may call this operation."""
        name = operation._schema.name
        if self.trusted or name in self.operations or is_allowed(operation):
            return
        reason = REASONS.get(name.removeprefix("aten::"), "it is not on the list of operations that files may call")
        if any(argument.is_out for argument in operation._schema.arguments):
            reason = "its variant with out= may change the size of the tensor that it writes into"
        raise ProgramFileError(
            f"The program calls {name}, which a file may not do by itself: {reason}. If you know where the file comes from, "
            f'load it with allow_operations=["{name}"], or with trusted=True to allow everything in it.'
        )


UNTRUSTED = Permission()
TRUSTED = Permission(trusted=True)


@functools.cache
def is_allowed(operation: torch._ops.OpOverload) -> bool:
    """Whether every file may call an operation: it computes, on tensors that it is given, and does nothing else."""
    schema = operation._schema
    library, _, name = schema.name.partition("::")
    if library != "aten":
        return library in OWN_LIBRARIES or schema.name in OWN_OPERATIONS
    if name not in ALLOWED or any(argument.is_out for argument in schema.arguments):
        return False
    returned = {str(each.type) for each in schema.returns}
    takes_plain = all(set(_WORDS.findall(str(argument.type))) <= _PLAIN for argument in schema.arguments)
    # Variants for Python's own numbers, texts and lists share their names with those for tensors.
    return takes_plain and returned <= _RETURNED and (not returned or returned != {"int"})


_WORDS = re.compile(r"\w+")
_PLAIN = frozenset(
    [
        "Tensor",
        "bool",
        "float",
        "int",
        "number",
        "complex",
        "str",
        "SymInt",
        "Device",
        "Generator",
        "Layout",
        "MemoryFormat",
        "ScalarType",
        "List",
        "Optional",
    ]
)
_RETURNED = frozenset({"Tensor", "List[Tensor]", "int"})

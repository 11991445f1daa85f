"""What a program from a file may do."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from pilotage.errors import ProgramFileError
from pilotage.storage.allowed_operations import ALLOWED, OWN_LIBRARIES, OWN_OPERATIONS, REASONS
from pilotage.torch_private import OpOverload, schema_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Permission:
    """What the user allows the program of a file."""

    trusted: bool = False
    """The file is trusted: any operation and any size. Its format is still checked."""

    operations: frozenset[str] = frozenset()
    """Additional operations that it may call, as ``library::name``."""

    memory: int | None = None
    """The memory limit of a step in bytes; None is the memory of the machine."""

    def check(self, operation: OpOverload) -> None:
        """Raise unless the program may call this operation."""
        name = schema_of(operation).name
        if self.trusted or name in self.operations or is_allowed(operation):
            return
        reason = REASONS.get(name.removeprefix("aten::"), "it is not on the list of allowed operations")
        if any(argument.is_out for argument in schema_of(operation).arguments):
            reason = "its variant with out= may resize the tensor that it writes into"
        raise ProgramFileError(
            f"The program calls {name}, which a file may not do by default: {reason}. If you trust the file, "
            f'load it with allow_operations=["{name}"], or with trusted=True to allow everything in it.'
        )


UNTRUSTED = Permission()
TRUSTED = Permission(trusted=True)


@functools.cache
def is_allowed(operation: OpOverload) -> bool:
    """Whether every file may call an operation: it only computes on its tensor arguments."""
    schema = schema_of(operation)
    library, _, name = schema.name.partition("::")
    if library != "aten":
        return library in OWN_LIBRARIES or schema.name in OWN_OPERATIONS
    if name not in ALLOWED or any(argument.is_out for argument in schema.arguments):
        return False
    returned = {str(each.type) for each in schema.returns}
    takes_plain = all(set(_WORDS.findall(str(argument.type))) <= _PLAIN for argument in schema.arguments)
    # Variants for Python numbers, strings and lists have the same names as those for tensors.
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

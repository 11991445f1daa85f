"""Texts that would create a file named MARKER if run as Python."""

from __future__ import annotations

TOUCH = "__import__('pathlib').Path('MARKER').touch()"

EXPRESSIONS = (TOUCH, f"({TOUCH},)[0]", f"x or {TOUCH}", f"{{{TOUCH}}}", "{" + TOUCH + "!r}")
"""Replacements for a value."""

NAMES = (
    f"x={TOUCH}",
    f"x=[{TOUCH}], *",
    f"x): {TOUCH}\ndef other(y",
    f"x = None\n    {TOUCH}\n    y",
    f"x\n{TOUCH}\n#",
    f"x; {TOUCH}; y",
    f"x: {TOUCH}",
    f"*, x={TOUCH}",
)
"""Replacements for an identifier."""

LINES = (
    f'File "x.py", line 1, in forward\n{TOUCH}',
    f'File "x.py", line 1, in forward\r{TOUCH}',
    f'File "x.py", line 1, in forward\n    """\n{TOUCH}\n    """',
)
"""Replacements for a source line."""

MODULES = ("os:system", "builtins:exec", "builtins:eval", "subprocess:Popen", "torch:load", "importlib:import_module")

ALL = (
    *EXPRESSIONS,
    *NAMES,
    *LINES,
    *MODULES,
    "../../MARKER",
    "/tmp/MARKER",
    "__class__",
    "__import__",
    "exec",
    "\x00",
    "é",
)

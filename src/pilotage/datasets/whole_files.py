"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` in one stroke, so that no reader and no interruption ever sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own for each writer: two processes may write the same file at once, and the last one wins.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "xb") as stream:
            stream.write(content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

"""The caches of keys and values that language models of Hugging Face return: training has no use for them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor

from pilotage.program.structure import Parsers


class LeftOut:
    """Replaces an object by None in what a program returns."""

    def tensors(self, value: Any) -> Iterable[Tensor]:
        """No tensors."""
        return ()

    def rebuild(self, original: Any, tensors: Iterator[Tensor]) -> None:
        """None, in place of the object."""
        return


def without_caches() -> Parsers:
    """Leaves the caches of transformers out, if that library is in use; it is not imported for this."""
    kind = getattr(sys.modules.get("transformers.cache_utils"), "Cache", None)
    return {kind: LeftOut()} if isinstance(kind, type) else {}

"""The flag of attention that is computed again in backward."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from habana_frameworks.torch.hpu import switches


@contextlib.contextmanager
def sdp_kernel(enable_recompute: bool = True) -> Iterator[dict[str, object]]:
    """Set the recompute flag of attention within a block."""
    before = switches.recompute_sdp_enabled()
    switches.enable_recompute_sdp(enable_recompute)
    try:
        yield {}
    finally:
        switches.enable_recompute_sdp(before)

"""The operations ``torch.ops.hpu.*`` that public programs call, written with torch's own.

Others are not registered, so that ``hasattr(torch.ops.hpu, name)`` says so, as programs expect.
"""

from __future__ import annotations

from habana_frameworks.torch.hpex.operations import experts, float8, norms, optimizer, rotation
from habana_frameworks.torch.hpex.operations.registry import register

for module in (experts, float8, norms, optimizer, rotation):
    for schema, function in module.OPERATIONS:
        register(schema, function)

"""The backend ``hpu_backend`` of torch.compile."""

from __future__ import annotations

from habana_frameworks.torch.dynamo.compile_backend.backends import hpu_backend as hpu_backend

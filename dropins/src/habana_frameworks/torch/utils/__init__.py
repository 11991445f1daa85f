"""Small functions of Habana's bridge."""

from __future__ import annotations

from habana_frameworks.torch.utils import debug as debug
from habana_frameworks.torch.utils import event_dispatcher as event_dispatcher
from habana_frameworks.torch.utils import experimental as experimental
from habana_frameworks.torch.utils import internal as internal
from habana_frameworks.torch.utils import library_loader as library_loader

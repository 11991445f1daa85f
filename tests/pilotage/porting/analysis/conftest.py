from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader
"""


@pytest.fixture
def project() -> Callable[..., Project]:
    """A project of scripts that are given as text, by their names without a suffix."""

    def make(**texts: str) -> Project:
        return Project([Source(Path(f"p/{name}.py"), HEAD + textwrap.dedent(text)) for name, text in texts.items()])

    return make

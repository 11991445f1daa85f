"""The whole configuration of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from cosmictagger.configuration.data import Data, Generated
from cosmictagger.configuration.framework import Framework, Torch
from cosmictagger.configuration.mode import Mode, Train
from cosmictagger.configuration.network import Network
from cosmictagger.configuration.run import Run


@dataclass
class Configuration:
    """All groups."""

    run: Run = field(default_factory=Run)
    mode: Mode = field(default_factory=Train)
    data: Data = field(default_factory=Generated)
    framework: Framework = field(default_factory=Torch)
    network: Network = field(default_factory=Network)
    output_dir: str = "output/${framework.name}/${network.name}/${run.id}/"

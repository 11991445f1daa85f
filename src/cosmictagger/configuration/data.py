"""The group ``data``: real, synthetic or generated events."""

from __future__ import annotations

from dataclasses import dataclass

from cosmictagger.configuration.choices import DataFormat


@dataclass
class Data:
    """Fields of every kind of data."""

    synthetic: bool = False
    downsample: int = 1
    """Reduce both axes by two to this power."""

    data_format: DataFormat = DataFormat.channels_first
    img_transform: bool = False
    """Take log(charge + 1)."""

    seed: int = 0
    """Seed of the order of events; 0 takes one from the clock."""

    workers: int = 0
    """Threads that read and decode; 0 means one for each core, at most eight."""


@dataclass
class Real(Data):
    """Files of events in larcv3's layout."""

    data_directory: str = "/data/datasets/SBND/cosmic_tagging_1/"
    file: str = "cosmic_tagging_train.h5"
    aux_file: str = "cosmic_tagging_test.h5"
    """Events for validation; empty or missing means none. Inference, visualize and iotest read ``file``."""


@dataclass
class Synthetic(Data):
    """Uniform noise, for benchmarks."""

    synthetic: bool = True


@dataclass
class Generated(Data):
    """Events of the built-in generator, kept in files in larcv3's layout."""

    data_directory: str = "output/generated/"
    """A folder that CosmicTagger creates; events are never generated into another one."""

    events: int = 400
    aux_events: int = 50
    generator_seed: int = 1
    """Held-out events use the next seed."""

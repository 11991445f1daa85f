"""The group ``data``: real, synthetic or generated events."""

from __future__ import annotations

from dataclasses import dataclass

from cosmictagger.configuration.choices import DataFormat


@dataclass
class Data:
    """What every kind of data has."""

    synthetic: bool = False
    downsample: int = 1
    """Both axes are reduced by two to this power."""

    data_format: DataFormat = DataFormat.channels_first
    img_transform: bool = False
    """Take log(charge + 1)."""

    seed: int = 0
    """Orders the events; 0 takes one from the clock."""

    workers: int = 0
    """Threads that read and decode; 0 takes one for each core, eight at most."""


@dataclass
class Real(Data):
    """Files of real or simulated events in larcv3's layout."""

    data_directory: str = "/data/datasets/SBND/cosmic_tagging_1/"
    file: str = "cosmic_tagging_train.h5"
    aux_file: str = "cosmic_tagging_test.h5"
    """Held-out events: validation while training, and what inference and visualize read."""


@dataclass
class Synthetic(Data):
    """Uniform noise, to measure with."""

    synthetic: bool = True


@dataclass
class Generated(Data):
    """Events drawn by the built-in generator and kept in files of larcv3's layout."""

    data_directory: str = "output/generated/"
    events: int = 400
    aux_events: int = 50
    generator_seed: int = 1
    """Held-out events are drawn with the seed after it."""

"""Outputs of models as in Hugging Face's transformers: dictionaries without entries that are None."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from dataclasses import dataclass

from torch import Tensor


class ModelOutput(OrderedDict):
    """A dictionary whose entries are also attributes."""

    def __init__(self, **entries):
        super().__init__({name: value for name, value in entries.items() if value is not None})
        self.__dict__.update(entries)


@dataclass
class DataclassOutput(OrderedDict):
    """The same, declared as a data class, as in transformers."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    aux_loss: Tensor | None = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if (value := getattr(self, field.name)) is not None:
                super().__setitem__(field.name, value)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    # Compare by entries, like a dictionary.
    __eq__ = OrderedDict.__eq__
    __hash__ = None

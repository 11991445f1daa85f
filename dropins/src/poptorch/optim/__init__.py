"""Optimizers with PopTorch's extra settings; each is an ordinary torch optimizer as well."""

from poptorch._optimizer_attributes import VariableAttributes
from poptorch.optim.adam import Adam, AdamW
from poptorch.optim.base import Optimizer
from poptorch.optim.lamb import LAMB
from poptorch.optim.rmsprop import RMSprop
from poptorch.optim.sgd import SGD

__all__ = ["LAMB", "SGD", "Adam", "AdamW", "Optimizer", "RMSprop", "VariableAttributes"]

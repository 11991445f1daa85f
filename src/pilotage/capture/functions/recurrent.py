"""Recurrent networks that torch would run with cuDNN.

cuDNN moves all weights into one block of memory, which cannot be captured. Such networks are captured as plain
operations, with the same results up to rounding. Dropout between layers draws from torch's generator instead of
cuDNN's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from pilotage.program.graphs.source_lines import is_called_by_torch
from pilotage.torch_private import FakeTensor

State: TypeAlias = tuple[Tensor, ...]
"""The recurrent state of a cell; its output comes first."""


@dataclass(frozen=True, slots=True)
class _Weights:
    """The weights of one layer in one direction."""

    of_input: Tensor
    of_state: Tensor
    bias_of_input: Tensor | None = None
    bias_of_state: Tensor | None = None
    projection: Tensor | None = None


Cell: TypeAlias = Callable[[Tensor, State, _Weights], State]
"""One step: takes the input, already multiplied by its weights, and the previous state."""


def _lstm_cell(x: Tensor, state: State, weights: _Weights) -> State:
    hidden, memory = state
    gates = x + functional.linear(hidden, weights.of_state, weights.bias_of_state)
    enter, forget, candidate, leave = gates.chunk(4, -1)
    memory = forget.sigmoid() * memory + enter.sigmoid() * candidate.tanh()
    hidden = leave.sigmoid() * memory.tanh()
    return hidden if weights.projection is None else functional.linear(hidden, weights.projection), memory


def _gru_cell(x: Tensor, state: State, weights: _Weights) -> State:
    (hidden,) = state
    before = functional.linear(hidden, weights.of_state, weights.bias_of_state)
    (reset, update, new), (reset_before, update_before, new_before) = x.chunk(3, -1), before.chunk(3, -1)
    candidate = torch.tanh(new + torch.sigmoid(reset + reset_before) * new_before)
    return ((hidden - candidate) * torch.sigmoid(update + update_before) + candidate,)


def _simple_cell(activation: Callable[[Tensor], Tensor]) -> Cell:
    def cell(x: Tensor, state: State, weights: _Weights) -> State:
        return (activation(x + functional.linear(state[0], weights.of_state, weights.bias_of_state)),)

    return cell


def _direction(cell: Cell, x: Tensor, state: State, weights: _Weights, *, backwards: bool) -> tuple[Tensor, State]:
    """Run over the time steps of x; returns all outputs and the last state."""
    steps = functional.linear(x, weights.of_input, weights.bias_of_input).unbind(0)
    outputs = []
    for step in reversed(steps) if backwards else steps:
        state = cell(step, state, weights)
        outputs.append(state[0])
    return torch.stack(outputs[::-1] if backwards else outputs), state


def _network(
    cell: Cell,
    x: Tensor,
    state: State,
    parameters: Sequence[Tensor],
    has_biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, State]:
    """Run all layers; states of layers and directions are stacked along the first dimension, as in torch."""
    directions = 2 if bidirectional else 1
    weights = _by_direction(parameters, has_biases, layers * directions)
    states = list(zip(*(part.unbind(0) for part in state), strict=True))
    x = x.transpose(0, 1) if batch_first else x
    last: list[State] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            output, after = _direction(cell, x, states[place], weights[place], backwards=direction == 1)
            outputs.append(output)
            last.append(after)
        x = torch.cat(outputs, -1) if bidirectional else outputs[0]
        if layer < layers - 1:
            x = functional.dropout(x, dropout, train)
    return x.transpose(0, 1) if batch_first else x, tuple(map(torch.stack, zip(*last, strict=True)))


def _by_direction(parameters: Sequence[Tensor], has_biases: bool, count: int) -> list[_Weights]:
    size = len(parameters) // count
    pieces = [parameters[start : start + size] for start in range(0, len(parameters), size)]
    if has_biases:
        return [_Weights(*piece) for piece in pieces]
    return [_Weights(piece[0], piece[1], projection=piece[2] if size == 3 else None) for piece in pieces]


def _where_cudnn_would(function: Callable[..., Any], cell: Cell) -> Callable[..., Any]:
    """The function in plain operations where torch would use cuDNN; packed sequences are left to torch."""

    def call(x: Tensor, state: Any, *settings: Any) -> Any:
        if isinstance(settings[0], Tensor) or not torch.backends.cudnn.is_acceptable(x):
            return function(x, state, *settings)
        parts = (state,) if isinstance(state, Tensor) else tuple(state)
        output, last = _network(cell, x, parts, *settings)
        return (output, *last)

    return call


def _one_gru_cell(
    x: Tensor, state: Tensor, of_input: Tensor, of_state: Tensor, bias_of_input: Any = None, bias_of_state: Any = None
) -> Tensor:
    if not torch.backends.cudnn.is_acceptable(x):
        return torch.gru_cell(x, state, of_input, of_state, bias_of_input, bias_of_state)
    weights = _Weights(of_input, of_state, bias_of_input, bias_of_state)
    return _gru_cell(functional.linear(x, of_input, bias_of_input), (state,), weights)[0]


def _address(tensor: Tensor) -> int:
    """Return 0 for a fake weight if a recurrent layer asks, so that it does not flatten its weights for cuDNN."""
    return 0 if isinstance(tensor, FakeTensor) and is_called_by_torch() else tensor.data_ptr()


RECURRENT_FORMS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    torch.lstm: _where_cudnn_would(torch.lstm, _lstm_cell),
    torch.gru: _where_cudnn_would(torch.gru, _gru_cell),
    torch.rnn_tanh: _where_cudnn_would(torch.rnn_tanh, _simple_cell(torch.tanh)),
    torch.rnn_relu: _where_cudnn_would(torch.rnn_relu, _simple_cell(torch.relu)),
    torch.gru_cell: _one_gru_cell,
    Tensor.data_ptr: _address,
}
"""Functions with their capturable forms."""

"""Recurrent networks and networks for sound."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from corpus.attention import Attention
from corpus.case import ADAM, ADAMW, RMSPROP, SGD, Case, tokens
from corpus.language import WORDS, next_words

WIDTH, LENGTH = 16, 8


class LanguageModel(nn.Module):
    """Words through a recurrent layer of torch."""

    def __init__(self, layer: nn.Module, result: int = WIDTH) -> None:
        super().__init__()
        self.words, self.layer, self.result = nn.Embedding(WORDS, WIDTH), layer, nn.Linear(result, WORDS)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""
        return next_words(self.result(self.layer(self.words(x))[0]), y)


class Cells(nn.Module):
    """A loop over cells, with teacher forcing and attention to the source."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.encoder = nn.Embedding(WORDS, WIDTH), nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.cell, self.result = nn.LSTMCell(2 * WIDTH, WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""
        source, _ = self.encoder(self.words(x))
        hidden = cell = source[:, -1]
        scores = []
        for word in functional.pad(y[:, :-1], (1, 0)).unbind(1):
            weights = torch.bmm(source, hidden[:, :, None]).softmax(1)
            hidden, cell = self.cell(torch.cat([self.words(word), (source * weights).sum(1)], 1), (hidden, cell))
            scores.append(self.result(hidden))
        return next_words(torch.stack(scores, 1), y)


class StateSpace(nn.Module):
    """A selective state space as a loop over time, in the style of Mamba."""

    def __init__(self, states: int = 4) -> None:
        super().__init__()
        self.words, self.gate, self.result = (
            nn.Embedding(WORDS, WIDTH),
            nn.Linear(WIDTH, WIDTH),
            nn.Linear(WIDTH, WORDS),
        )
        self.near = nn.Conv1d(WIDTH, WIDTH, 3, padding=2, groups=WIDTH)
        self.selected = nn.Linear(WIDTH, 2 * states + WIDTH)
        self.decay = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(WIDTH, 1))
        self.states = states

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""
        h = self.words(x)
        u = functional.silu(self.near(h.transpose(1, 2))[..., :LENGTH].transpose(1, 2))
        into, out, step = self.selected(u).split([self.states, self.states, WIDTH], -1)
        step = functional.softplus(step)
        state, read = torch.zeros(len(x), WIDTH, self.states), []
        for t in range(LENGTH):
            kept = torch.exp(-step[:, t, :, None] * self.decay.exp())
            state = kept * state + (step[:, t] * u[:, t])[..., None] * into[:, t, None]
            read.append((state * out[:, t, None]).sum(-1))
        return next_words(self.result(torch.stack(read, 1) * functional.silu(self.gate(h))), y)


class ConvolutionalLSTM(nn.Module):
    """Gates made by convolutions, on a short film."""

    def __init__(self) -> None:
        super().__init__()
        self.gates, self.last = nn.Conv2d(1 + 4, 16, 3, padding=1), nn.Conv2d(4, 1, 1)

    def forward(self, film: Tensor) -> Tensor:
        """The loss of the next pictures."""
        hidden = cell = torch.zeros(len(film), 4, *film.shape[-2:])
        lost = torch.zeros(())
        for now, then in zip(film.unbind(1)[:-1], film.unbind(1)[1:], strict=True):
            into, keep, out, value = self.gates(torch.cat([now, hidden], 1)).chunk(4, 1)
            cell = keep.sigmoid() * cell + into.sigmoid() * value.tanh()
            hidden = out.sigmoid() * cell.tanh()
            lost = lost + functional.l1_loss(self.last(hidden), then)
        return lost


class WaveNet(nn.Module):
    """Dilated causal convolutions with gates and skips."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv1d(1, 8, 1), nn.Sequential(nn.ReLU(), nn.Conv1d(8, 16, 1))
        self.gated = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 16, 2, dilation=2**i)) for i in range(3)
        )
        self.mixed = nn.ModuleList(nn.Conv1d(8, 16, 1) for _ in range(3))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss of quantized sound."""
        x, skips = self.first(x), torch.zeros(())
        for number, (gated, mixed) in enumerate(zip(self.gated, self.mixed, strict=True)):
            value, gate = gated(functional.pad(x, (2**number, 0))).chunk(2, 1)
            change, skip = mixed(value.tanh() * gate.sigmoid()).chunk(2, 1)
            x, skips = x + change, skips + skip
        return functional.cross_entropy(self.last(skips), y)


class Conformer(nn.Module):
    """Half a perceptron, attention, a convolution with a gated linear unit, and half a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv1d(10, WIDTH, 3, 2, 1)
        self.halves = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 32), nn.SiLU(), nn.Linear(32, WIDTH)) for _ in range(2)
        )
        self.norm, self.attention = nn.LayerNorm(WIDTH), Attention(WIDTH)
        self.convolution = nn.Sequential(
            nn.Conv1d(WIDTH, 2 * WIDTH, 1), nn.GLU(1), nn.Conv1d(WIDTH, WIDTH, 5, padding=2, groups=WIDTH),
            nn.BatchNorm1d(WIDTH), nn.SiLU(), nn.Conv1d(WIDTH, WIDTH, 1),
        )  # fmt: skip
        self.result = nn.Linear(WIDTH, 6)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss of phonemes."""
        x = self.stem(x).transpose(1, 2)
        x = x + 0.5 * self.halves[0](x)
        x = x + self.attention(self.norm(x))
        x = x + self.convolution(x.transpose(1, 2)).transpose(1, 2)
        return next_words(self.result(x + 0.5 * self.halves[1](x)), y)


class Spectrogram(nn.Module):
    """Sound through a short-time Fourier transform and a small network."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.layers = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.PReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten())
        self.result = nn.Linear(16, 4)

    def forward(self, sound: Tensor, classes: Tensor) -> Tensor:
        """The loss."""
        spectrum = torch.stft(sound, 16, 8, window=self.window, return_complex=True).abs().square()
        return functional.cross_entropy(self.result(self.layers(torch.log1p(spectrum)[:, None])), classes)


RECURRENT = {
    "LSTM": Case(lambda: LanguageModel(nn.LSTM(WIDTH, WIDTH, 2, batch_first=True, dropout=0.2)), tokens, SGD),
    "GRU both ways": Case(
        lambda: LanguageModel(nn.GRU(WIDTH, 8, batch_first=True, bidirectional=True)), tokens, RMSPROP
    ),
    "plain recurrent network": Case(lambda: LanguageModel(nn.RNN(WIDTH, WIDTH, batch_first=True)), tokens, SGD),
    "translation with cells": Case(Cells, lambda: tokens(length=4), ADAM),
    "Mamba": Case(StateSpace, lambda: tokens(length=LENGTH), ADAMW),
    "convolutional LSTM": Case(ConvolutionalLSTM, lambda: [torch.randn(2, 3, 1, 6, 6)], RMSPROP),
    "WaveNet": Case(WaveNet, lambda: [torch.randn(2, 1, 16), torch.randint(0, 16, (2, 16))], ADAM),
    "Conformer": Case(Conformer, lambda: [torch.randn(2, 10, 12), torch.randint(0, 6, (2, 6))], ADAMW),
    "spectrogram": Case(Spectrogram, lambda: [torch.randn(2, 64), torch.arange(2)], ADAM),
}

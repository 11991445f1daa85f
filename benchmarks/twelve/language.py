"""Language models: GPT-2, an encoder, T5, Mixtral and an LSTM."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.twelve.subject import ADAMW, SGD, Subject


def next_words(scores: Tensor, words: Tensor) -> Tensor:
    """The loss of predicted words."""
    return functional.cross_entropy(scores.flatten(0, -2).float(), words.flatten())


def text(batch: int, length: int, words: int) -> tuple[Tensor, Tensor]:
    """Words, and those that follow them."""
    found = torch.randint(0, words, (batch, length + 1))
    return found[:, :-1].contiguous(), found[:, 1:].contiguous()


class Attention(nn.Module):
    """Attention of heads to the same or another sequence."""

    def __init__(self, width: int, heads: int, *, bias: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.last = (nn.Linear(width, width, bias=bias) for _ in range(2))
        self.pair = nn.Linear(width, 2 * width, bias=bias)

    def forward(self, x: Tensor, source: Tensor, *, causal: bool, mask: Tensor | None = None) -> Tensor:
        """What each place reads."""
        key, value = self.pair(source).chunk(2, -1)
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (self.query(x), key, value))
        read = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.last(read.transpose(1, 2).flatten(2))


class GPT2Block(nn.Module):
    """Causal attention and a perceptron."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        """The block's result."""
        given = self.first(x)
        x = x + self.dropout(self.attention(given, given, causal=True))
        return x + self.dropout(self.narrow(functional.gelu(self.wide(self.second(x)), approximate="tanh")))


class GPT2(nn.Module):
    """GPT-2; words and results share weights."""

    def __init__(self, words: int, length: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(GPT2Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""
        h = self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return next_words(functional.linear(self.norm(self.blocks(h)), self.words.weight), y)


class Encoder(nn.Module):
    """torch's encoder of the size of BERT base, on signals."""

    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""
        return functional.mse_loss(self.layers(x).float(), y)


class T5Layer(nn.Module):
    """A layer of T5's encoder or decoder, with gated GELU."""

    def __init__(self, width: int, heads: int, *, reads: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(3))
        self.own, self.other = (
            Attention(width, heads, bias=False),
            Attention(width, heads, bias=False) if reads else None,
        )
        self.gate, self.wide = (nn.Linear(width, 4 * width, bias=False) for _ in range(2))
        self.narrow = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor, mask: Tensor, source: Tensor | None = None) -> Tensor:
        """The layer's result; ``mask`` has the bias of relative positions."""
        given = self.norms[0](x)
        x = x + self.own(given, given, causal=False, mask=mask)
        if self.other is not None:
            assert source is not None
            x = x + self.other(self.norms[1](x), source, causal=False)
        given = self.norms[2](x)
        return x + self.narrow(functional.gelu(self.gate(given)) * self.wide(given))


class T5(nn.Module):
    """An encoder-decoder in the style of T5, with buckets of relative positions."""

    def __init__(self, words: int, length: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.words, self.buckets = nn.Embedding(words, width), nn.Embedding(32, heads)
        self.encoder = nn.ModuleList(T5Layer(width, heads, reads=False) for _ in range(layers))
        self.decoder = nn.ModuleList(T5Layer(width, heads, reads=True) for _ in range(layers))
        distance = torch.arange(length)[None] - torch.arange(length)[:, None]
        self.register_buffer("bucket", distance.clamp(-16, 15) + 16)
        self.register_buffer("later", torch.full((length, length), float("-inf")).triu(1))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""
        source = self.words(x)
        near = self.buckets(self.bucket).permute(2, 0, 1)[None].type_as(source)
        for layer in self.encoder:
            source = layer(source, near)
        h = self.words(functional.pad(y[:, :-1], (1, 0)))
        for layer in self.decoder:
            h = layer(h, near + self.later.type_as(near), source)
        return next_words(functional.linear(h, self.words.weight), y)


class Experts(nn.Module):
    """The two best of several gated perceptrons for each word, all of which are computed."""

    def __init__(self, width: int, experts: int, inner: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.gate, self.up = (nn.Parameter(torch.randn(experts, width, inner) * width**-0.5) for _ in range(2))
        self.down = nn.Parameter(torch.randn(experts, inner, width) * inner**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """The weighted sum of the chosen experts."""
        flat = x.flatten(0, 1).expand(len(self.gate), -1, -1)
        found = torch.bmm(functional.silu(torch.bmm(flat, self.gate)) * torch.bmm(flat, self.up), self.down)
        best, which = self.router(x).flatten(0, 1).float().softmax(-1).topk(2, -1)
        weights = torch.zeros(len(best), len(self.gate), device=x.device).scatter(1, which, best / best.sum(-1, True))
        return torch.einsum("etw,te->tw", found, weights.type_as(found)).view_as(x)


class Mixtral(nn.Module):
    """A decoder with rotary positions and experts."""

    def __init__(self, words: int, length: int, width: int, layers: int, heads: int, experts: int) -> None:
        super().__init__()
        self.words, self.result = nn.Embedding(words, width), nn.Linear(width, words, bias=False)
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2 * layers + 1))
        self.attentions = nn.ModuleList(Attention(width, heads, bias=False) for _ in range(layers))
        self.experts = nn.ModuleList(Experts(width, experts, 2 * width) for _ in range(layers))
        angles = torch.outer(torch.arange(length).float(), 10000 ** (-torch.arange(width // 2) / (width // 2)))
        self.register_buffer("cosine", angles.cos().repeat(1, 2))
        self.register_buffer("sine", angles.sin().repeat(1, 2))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""
        h = self.words(x)
        one, other = h.chunk(2, -1)
        h = h * self.cosine + torch.cat([-other, one], -1) * self.sine
        for number, (attention, experts) in enumerate(zip(self.attentions, self.experts, strict=True)):
            given = self.norms[2 * number](h)
            h = h + attention(given, given, causal=True)
            h = h + experts(self.norms[2 * number + 1](h))
        return next_words(self.result(self.norms[-1](h)), y)


class LSTM(nn.Module):
    """A word language model with an LSTM of two layers."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.words, self.result = nn.Embedding(words, width), nn.Linear(width, words)
        self.layers = nn.LSTM(width, width, 2, batch_first=True, dropout=0.2)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""
        return next_words(self.result(self.layers(self.words(x))[0]), y)


def _of(kind: type[nn.Module]):
    def make(batch: int, **sizes: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
        return kind(**sizes), text(batch, sizes["length"], sizes["words"])

    return make


def _encoder(batch: int, length: int, **sizes: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return Encoder(**sizes), (torch.randn(batch, length, sizes["width"]), torch.randn(batch, length, sizes["width"]))


def _lstm(batch: int, length: int, **sizes: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return LSTM(**sizes), text(batch, length, sizes["words"])


_TINY = {"batch": 2, "length": 8, "words": 32, "width": 16, "layers": 1, "heads": 2}

LANGUAGE = {
    "GPT-2 small, 8 x 512": Subject(
        _of(GPT2), ADAMW, {"batch": 8, "length": 512, "words": 50257, "width": 768, "layers": 12, "heads": 12}, _TINY
    ),
    "encoder, 12 layers, 8 x 512": Subject(
        _encoder,
        ADAMW,
        {"batch": 8, "length": 512, "width": 768, "layers": 12, "heads": 12},
        {"batch": 2, "length": 8, "width": 16, "layers": 1, "heads": 2},
    ),
    "T5-like encoder-decoder, 8 x 512": Subject(
        _of(T5), ADAMW, {"batch": 8, "length": 512, "words": 32128, "width": 768, "layers": 6, "heads": 12}, _TINY
    ),
    "Mixtral-like decoder, 4 x 512": Subject(
        _of(Mixtral),
        ADAMW,
        {"batch": 4, "length": 512, "words": 32000, "width": 768, "layers": 6, "heads": 12, "experts": 8},
        {**_TINY, "experts": 4},
    ),
    "LSTM language model, 20 x 70": Subject(
        _lstm,
        SGD,
        {"batch": 20, "length": 70, "words": 33278, "width": 650},
        {"batch": 2, "length": 8, "words": 32, "width": 16},
        autocast=False,
    ),
}

"""Decoding the outputs of a network that was trained with the CTC loss."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from poptorch._errors import createPoptorchError
from poptorch.ops.checks import require_tensor

Path = tuple[int, ...]


def ctc_beam_search_decoder(
    probs: Tensor, lengths: Tensor, blank: int = 0, beam_width: int = 100, top_paths: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """The most likely label sequences of each sample: log-probabilities, lengths, and labels padded with blanks.

    ``probs`` holds log-probabilities by time, sample and class; each sample counts up to its length.
    """
    require_tensor("ctc_beam_search_decoder", "probs", probs)
    require_tensor("ctc_beam_search_decoder", "lengths", lengths)
    if probs.dim() != 3 or lengths.shape != probs.shape[1:2]:
        raise createPoptorchError(
            "poptorch.ctc_beam_search_decoder takes probs of shape (time, sample, class) and one length per sample, "
            "not shapes {list(probs.shape)} and {list(lengths.shape)}."
        )
    if not isinstance(blank, int) or not 0 <= blank < probs.shape[2]:
        raise createPoptorchError(
            f"poptorch.ctc_beam_search_decoder takes the index of one of the {probs.shape[2]} classes as blank, not "
            f"{blank!r}."
        )
    for name, value in {"beam_width": beam_width, "top_paths": top_paths}.items():
        if not isinstance(value, int) or value < 1:
            raise createPoptorchError(f"poptorch.ctc_beam_search_decoder takes a {name} of at least 1, not {value!r}.")
    if top_paths > beam_width:
        raise createPoptorchError(
            f"poptorch.ctc_beam_search_decoder cannot return {top_paths} paths out of a beam of {beam_width}."
        )
    decoded: tuple[Tensor, Tensor, Tensor] = torch.ops.poptorch.ctc_beam_search(
        probs.detach(), lengths, blank, beam_width, top_paths
    )
    return decoded


@torch.library.custom_op(
    "poptorch::ctc_beam_search",
    mutates_args=(),
    tags=[torch.Tag.cudagraph_unsafe],
    schema="(Tensor probs, Tensor lengths, int blank, int beam_width, int top_paths) -> (Tensor, Tensor, Tensor)",
)
def _ctc_beam_search(
    probs: Tensor, lengths: Tensor, blank: int, beam_width: int, top_paths: int
) -> tuple[Tensor, Tensor, Tensor]:
    steps, samples, _ = probs.shape
    scores = torch.full((samples, top_paths), -math.inf, dtype=torch.float32)
    path_lengths = torch.zeros((samples, top_paths), dtype=torch.int32)
    labels = torch.full((samples, top_paths, steps), blank, dtype=torch.int32)
    for sample, length in enumerate(lengths.tolist()):
        rows: list[list[float]] = probs[:length, sample].double().tolist()
        for rank, (path, score) in enumerate(_best_paths(rows, blank, beam_width)[:top_paths]):
            scores[sample, rank] = score
            path_lengths[sample, rank] = len(path)
            labels[sample, rank, : len(path)] = torch.tensor(path, dtype=torch.int32)
    return scores.to(probs), path_lengths.to(probs.device), labels.to(probs.device)


@_ctc_beam_search.register_fake
def _(probs: Tensor, lengths: Tensor, blank: int, beam_width: int, top_paths: int) -> tuple[Tensor, Tensor, Tensor]:
    steps, samples, _ = probs.shape
    return (
        probs.new_empty(samples, top_paths),
        probs.new_empty(samples, top_paths, dtype=torch.int32),
        probs.new_empty(samples, top_paths, steps, dtype=torch.int32),
    )


@dataclass(slots=True)
class _Score:
    """Log-probabilities of a path, by how its alignments end."""

    in_blank: float = -math.inf
    in_label: float = -math.inf

    @property
    def total(self) -> float:
        return _sum(self.in_blank, self.in_label)


def _best_paths(rows: Sequence[Sequence[float]], blank: int, beam_width: int) -> list[tuple[Path, float]]:
    """The final paths of a beam of this width, the most likely first."""
    beam: dict[Path, _Score] = {(): _Score(in_blank=0.0)}
    for row in rows:
        grown: defaultdict[Path, _Score] = defaultdict(_Score)
        for path, score in beam.items():
            _grow(grown, path, score, row, blank)
        ranked = sorted(grown.items(), key=lambda entry: -entry[1].total)
        beam = dict(ranked[:beam_width])
    return [(path, score.total) for path, score in beam.items() if score.total > -math.inf]


def _grow(grown: defaultdict[Path, _Score], path: Path, score: _Score, row: Sequence[float], blank: int) -> None:
    """Add the continuations of a path at the next time step."""
    for label, probability in enumerate(row):
        if label == blank:
            grown[path].in_blank = _sum(grown[path].in_blank, score.total + probability)
        elif path and label == path[-1]:
            # A repeated label extends the path only after a blank.
            grown[path].in_label = _sum(grown[path].in_label, score.in_label + probability)
            longer = grown[*path, label]
            longer.in_label = _sum(longer.in_label, score.in_blank + probability)
        else:
            longer = grown[*path, label]
            longer.in_label = _sum(longer.in_label, score.total + probability)


def _sum(a: float, b: float) -> float:
    """The logarithm of the sum of two numbers, given their logarithms."""
    larger, smaller = max(a, b), min(a, b)
    return larger if smaller == -math.inf else larger + math.log1p(math.exp(smaller - larger))

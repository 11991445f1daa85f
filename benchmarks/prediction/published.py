"""Published throughputs of IPUs beside what the device models say.

    python -m benchmarks.prediction.published

The constants of the models come from published facts about the hardware and from what the rows have in common; none is
fitted to one row. What a source does not say, such as a micro-batch, is assumed here and stands in the row.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import nn

from benchmarks.prediction import networks
from benchmarks.prediction.predicted import traced_of
from benchmarks.prediction.programs import Made, TrainingProgram
from pilotage.prediction.devices import device_model
from pilotage.prediction.prediction import Prediction, Traced, predicted
from pilotage.prediction.subject import Loading


@dataclass(frozen=True, kw_only=True)
class Published:
    """One published figure."""

    what: str
    system: str
    model: str
    rate: float
    """Samples per second of the whole system."""

    make: Callable[[], Made]
    replicas: int = 1
    accumulation: int = 1
    iterations: int = 1
    loader: str = "none"
    """``none`` for generated data or a loader that keeps up, ``synchronous`` or ``asynchronous``."""

    loaded_bytes: float = 0.0
    """What the loader prepares for each sample."""

    assumed: str = ""
    is_further: bool = False
    """Whether the row is not among those that the models are meant for."""


def _sgd(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)


def _resnet(
    blocks: tuple[int, ...], batch: int, size: int, classes: int, dtype: torch.dtype, cuts: tuple[int, ...] = ()
) -> Made:
    network = networks.ResNet(blocks, bottleneck=True, classes=classes).to(dtype)
    network.cuts = cuts
    module = networks.WithLoss(network, nn.CrossEntropyLoss())
    images = torch.empty(batch, 3, size, size, dtype=dtype)
    return module, [images, torch.zeros(batch, dtype=torch.long)], _sgd(module)


@cache
def _resnet50(batch: int) -> Callable[[], Made]:
    return lambda: _resnet((3, 4, 6, 3), batch, 224, 1000, torch.float16)


@cache
def _small_resnet50(batch: int) -> Callable[[], Made]:
    return lambda: _resnet((3, 4, 6, 3), batch, 64, 200, torch.float32)


def _resnet101() -> Made:
    return _resnet((3, 4, 23, 3), 64, 64, 200, torch.float16, cuts=(13,))


@cache
def _bert(batch: int) -> Callable[[], Made]:
    def make() -> Made:
        network = networks.Transformer(24, 1024, 16, 30522, 128, dropout=0.1, stages=4).half()
        module = networks.WithLoss(network, networks.FlatLoss())
        tokens = torch.zeros(batch, 128, dtype=torch.long)
        return module, [tokens, tokens], torch.optim.AdamW(module.parameters(), lr=1e-4)

    return make


def _classifier() -> Made:
    module = networks.WithLoss(networks.Tutorial(), nn.NLLLoss())
    return module, [torch.empty(16, 1, 28, 28), torch.zeros(16, dtype=torch.long)], _sgd(module)


_IMAGE64 = 64 * 64 * 3
_SYNCHRONOUS = {"loader": "synchronous"}

ROWS = (
    Published(what="ResNet-50, float16", system="Bow Pod16", model="bow", rate=42029, make=_resnet50(20), replicas=16,
              accumulation=10, assumed="micro-batch 20, 3,200 images an update"),
    Published(what="ResNet-50, float16", system="Bow Pod64", model="bow", rate=145287, make=_resnet50(20), replicas=64,
              accumulation=5, assumed="micro-batch 20, 6,400 images an update"),
    Published(what="ResNet-50, float16", system="Bow Pod256", model="bow", rate=425514, make=_resnet50(20),
              replicas=256, accumulation=2, assumed="micro-batch 20, 10,240 images an update"),
    Published(what="ResNet-50, PyTorch, real data", system="4 Bow", model="bow", rate=7863, make=_resnet50(16),
              replicas=4, accumulation=16, assumed="micro-batch 16, accumulation 16; 7,600 to 8,126 were published"),
    Published(what="BERT-Large, 128 tokens, PopART", system="Bow Pod16", model="bow", rate=5179, make=_bert(16),
              replicas=4, accumulation=64, assumed="4 stages, micro-batch 16, accumulation 64"),
    Published(what="BERT-Large, packed, PyTorch", system="Bow Pod16", model="bow", rate=5600, make=_bert(16),
              replicas=4, accumulation=64, assumed="as the row above"),
    Published(what="BERT-Large, 128 tokens, generated data", system="64 Bow", model="bow", rate=17692,
              make=_bert(16), replicas=16, accumulation=64, assumed="4 stages, micro-batch 16, accumulation 64"),
    Published(what="tutorial's classifier, batch 16", system="1 Mk2", model="mk2", rate=6000, make=_classifier,
              loaded_bytes=28 * 28 * 4, assumed="one call for each batch", **_SYNCHRONOUS),
    Published(what="ResNet-50, 64 x 64, batch 8, float32", system="1 Mk2", model="mk2", rate=884,
              make=_small_resnet50(8), loaded_bytes=_IMAGE64 * 4, assumed="one call for each batch", **_SYNCHRONOUS),
    Published(what="the same, 2 replicas", system="2 Mk2", model="mk2", rate=1016, make=_small_resnet50(8),
              replicas=2, loaded_bytes=_IMAGE64 * 4, assumed="one loader for both", **_SYNCHRONOUS),
    Published(what="ResNet-101, accumulation 3", system="2 Mk2", model="mk2", rate=948, make=_resnet101,
              accumulation=3, loaded_bytes=_IMAGE64 * 4, assumed="2 stages", is_further=True, **_SYNCHRONOUS),
    Published(what="ResNet-101, accumulation 8", system="2 Mk2", model="mk2", rate=1075, make=_resnet101,
              accumulation=8, loaded_bytes=_IMAGE64 * 4, assumed="2 stages", is_further=True, **_SYNCHRONOUS),
    Published(what="… and 4 device iterations", system="2 Mk2", model="mk2", rate=1089, make=_resnet101,
              accumulation=8, iterations=4, loaded_bytes=_IMAGE64 * 4, is_further=True, **_SYNCHRONOUS),
    Published(what="… and 8-bit input", system="2 Mk2", model="mk2", rate=3625, make=_resnet101, accumulation=8,
              iterations=4, loaded_bytes=_IMAGE64, is_further=True, **_SYNCHRONOUS),
    Published(what="… and an asynchronous loader", system="2 Mk2", model="mk2", rate=5652, make=_resnet101,
              accumulation=8, iterations=4, loader="asynchronous", loaded_bytes=_IMAGE64, is_further=True),
)  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression for the names of rows")
    arguments = parser.parse_args()
    known: dict[tuple[object, int], Traced] = {}
    print(f"{'workload':<42} {'system':<11} {'published':>10} {'predicted':>10} {'ratio':>6}  assumed")
    worst = 1.0
    for row in (each for each in ROWS if re.search(arguments.only, each.what)):
        ratio = rate_of(row, known) / row.rate
        mark = " (further)" if row.is_further else ""
        if not row.is_further:
            worst = max(worst, ratio, 1 / ratio)
        print(
            f"{row.what:<42} {row.system:<11} {row.rate:>10,.0f} {ratio * row.rate:>10,.0f} {ratio:>6.2f}  "
            f"{row.assumed}{mark}",
            flush=True,
        )
    print(f"worst factor of the rows that count: {worst:.2f}")


def rate_of(row: Published, known: dict[tuple[object, int], Traced]) -> float:
    """Samples per second of the whole system."""
    return prediction_of(row, known).throughput


def prediction_of(row: Published, known: dict[tuple[object, int], Traced]) -> Prediction:
    """The prediction of a row; rows of one program share its capture."""
    model, key = device_model(row.model), (row.make, min(row.accumulation, 2))
    if key not in known:
        options = {"gradient_accumulation": row.accumulation} if row.accumulation > 1 else {}
        known[key] = traced_of(TrainingProgram(name=row.what, make=row.make, options=options), model)
    found = known[key]
    batching = replace(
        found.batching,
        gradient_accumulation=row.accumulation,
        replicas=row.replicas,
        device_iterations=row.iterations,
    )
    update = found.update
    times = tuple(row.accumulation if each.phase.value != "update" else 1 for each in update.operations)
    host = model.host
    seconds = host.loader_sample_seconds + row.loaded_bytes / host.loader_bytes_per_second
    loading = Loading(sample_seconds=0.0 if row.loader == "none" else seconds, overlaps=row.loader == "asynchronous")
    return predicted(
        replace(
            found,
            update=replace(update, times=times),
            batching=batching,
            loading=loading,
            input_bytes=round(row.loaded_bytes * found.samples) or found.input_bytes,
        ),
        model,
    )


if __name__ == "__main__":
    main()

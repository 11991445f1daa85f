"""What predicting large models takes: processor time and memory of `pilotage predict`.

    python -m benchmarks.prediction.large            # predicts each model in a process of its own
    pilotage predict benchmarks.prediction.large:bert_large

No weight is ever allocated, so that a decoder of 7 billion parameters needs little more than a small model.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.prediction import networks


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A model, and what predicting it may take."""

    function: str
    seconds: float
    bytes: float


LIMITS = (
    Limit(function="bert_large", seconds=30, bytes=2e9),
    Limit(function="decoder_7b", seconds=120, bytes=4e9),
)


def bert_large() -> None:
    """Train BERT-Large for one step: 24 layers, 336 million parameters, 8 sequences of 512 tokens."""
    _train(networks.Transformer(24, 1024, 16, 30522, 512, dropout=0.1), 30522, 8, 512)


def decoder_7b() -> None:
    """Train a decoder of 7 billion parameters for one step: 34 layers, 1 sequence of 2,048 tokens."""
    _train(networks.Transformer(34, 4096, 32, 32000, 2048, causal=True), 32000, 1, 2048)


def _train(network: networks.Transformer, vocabulary: int, batch: int, length: int) -> None:
    import pilotage

    module = networks.WithLoss(network, networks.FlatLoss())
    step = pilotage.training(module, torch.optim.AdamW(module.parameters(), lr=1e-4))
    tokens = torch.zeros(batch, length, dtype=torch.long)
    step(tokens, tokens)


def main() -> None:
    """Predict each model, and print what that took beside what it may take."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="bow,h200")
    parser.add_argument("--seconds", default="12", help="time for predicting changes")
    arguments = parser.parse_args()
    print(f"{'model':<12} {'processor time':>15} {'limit':>7} {'peak memory':>12} {'limit':>7}")
    for limit in LIMITS:
        seconds, peak = _usage(limit.function, arguments.device, arguments.seconds)
        print(
            f"{limit.function:<12} {seconds:>13.1f} s {limit.seconds:>5.0f} s {peak / 1e9:>9.2f} GB "
            f"{limit.bytes / 1e9:>4.0f} GB  {'within' if seconds < limit.seconds and peak < limit.bytes else 'OVER'}",
            flush=True,
        )


def _usage(function: str, device: str, seconds: str) -> tuple[float, float]:
    """The processor time and the peak memory of one prediction, of all its threads."""
    command = [sys.executable, "-m", "pilotage", "predict", f"benchmarks.prediction.large:{function}"]
    command += ["--device", device, "--seconds", seconds]
    child = os.posix_spawn(
        sys.executable,
        command,
        {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 3):
        raise SystemExit(f"predicting {function} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024.0


if __name__ == "__main__":
    main()

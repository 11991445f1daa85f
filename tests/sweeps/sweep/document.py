"""The page of supported operations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from sweep.exceptions import OUT_OF_SCOPE, Exceptions, Known

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "supported-operations.md"
RESULTS = Path(__file__).parent.parent / "results.json"

KINDS = {
    "no processor": "does not run in eager PyTorch on a CPU",
    "open shape": "the shape of the result depends on the values of a tensor",
    "python value": "the result is a Python value that depends on a tensor",
    "sparse": "inputs and outputs of a program are dense",
    "storage": "inputs are copies, without the memory around them",
}

TEXT = """\
# Supported operations

Operations that PyTorch can trace are supported. If an operation is not listed under [What does not
run](#what-does-not-run), it runs, forward and backward; otherwise [What to write instead](#what-to-write-instead) has a
rewrite. PopTorch's own operations, from `poptorch.for_loop` to `poptorch.custom_op`, are in [PopTorch, name by
name](poptorch-parity.md#operations).

This page is written by a sweep over torch's own test databases, `op_db` with its operations and `module_db` with its
modules, in torch {torch}. Every sample goes through `poptorch.inferenceModel`, and
its shape, type and values are compared with eager PyTorch; for gradients it goes through `poptorch.trainingModel` with
plain SGD, and the change of every parameter is compared. Gradients are given in both orders of dimensions, because
kernels differ there.

- **inference**: all samples in float32, or in the first of complex64, int64, bool and float8 if there is no float32.
- **half**: two samples of each entry in float16.
- **gradients**: up to sixteen samples of each entry that has gradients.

{table}

*Equal* means bitwise equal, *close* within 1e-5 (float32) or 1e-2 (float16) relative; an entry counts as equal if all
its samples in scope are equal or close. *Refused* samples raise an error that names the function, the user's line
and a rewrite; *stopped* ones fail when they run. *In scope* are entries with static shapes that run on a CPU in
eager PyTorch, and their samples that do so. Samples that fail in eager PyTorch are not counted.
Uninitialised tensors (`empty` and its relatives) are compared by shape and type.

## What does not run

{exceptions}

## What to write instead

{advice}

## What is computed differently

- Checks of values are skipped: the variance of `gaussian_nll_loss`, the weights of `cov`, the windows of
  `istft`, arguments and samples of distributions.
- `bincount` with `minlength` has exactly that many bins, and a larger value is an error.
- `x[i]`, `select` and `narrow` at a position given by a tensor return copies, not views; writing to one is refused.
- `BatchNorm` with `momentum=None` keeps its count in a tensor, and its averages agree within rounding.
- `TransformerEncoder` and `TransformerDecoder` use a mask as given, without checking whether it is causal.

`python tests/sweeps` writes this page again, which takes some minutes, and prints the same numbers.
"""


def read_results() -> dict[str, Any]:
    """What the last complete sweep found."""
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def write_results(numbers: Mapping[str, Mapping[str, int]]) -> None:
    """Keep what a complete sweep found."""
    results = {"torch": torch.__version__.partition("+")[0], "numbers": numbers}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def page(results: Mapping[str, Any], exceptions: Exceptions, advice: Mapping[str, str]) -> str:
    """The whole page."""
    return TEXT.format(
        torch=results["torch"],
        table=table(results["numbers"]),
        exceptions="\n".join(_exception_lines(exceptions)),
        advice="\n".join(f"- `{name}`: {text}" for name, text in sorted(advice.items())),
    )


def table(numbers: Mapping[str, Mapping[str, int]]) -> str:
    """The numbers of all measures."""
    lines = [
        "| | entries | in scope | equal | share | samples | equal | close | refused | stopped | wrong |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, found in numbers.items():
        share = found["entries equal"] / max(found["entries in scope"], 1)
        cells = [
            name,
            found["entries"],
            found["entries in scope"],
            found["entries equal"],
            f"{share:.1%}",
            found["samples"],
            *(found[f"samples {outcome}"] for outcome in ("equal", "close", "refused", "stopped", "wrong")),
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _exception_lines(exceptions: Exceptions) -> list[str]:
    lines = ["| entry | samples | why | in scope |", "|---|---|---|---|"]
    return [*lines, *map(_line, sorted(exceptions.known, key=lambda known: (known.kind, known.entry)))]


def _line(known: Known) -> str:
    scope = "no" if known.kind in OUT_OF_SCOPE else "yes"
    return f"| `{known.entry}` | {known.samples} | {KINDS[known.kind]}: {known.reason} | {scope} |"

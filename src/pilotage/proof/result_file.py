"""A proof as a file: all that a colleague needs to repeat it."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pilotage
from pilotage.errors import ProofError
from pilotage.monitoring.kernel_files import text_of
from pilotage.monitoring.processor import memory_of, processor_name, usable_cores
from pilotage.proof.findings.results import computed_types
from pilotage.proof.proof import Proof, Request
from pilotage.proof.running import WatchedRun
from pilotage.proof.steps import steps_of
from pilotage.whole_files import write_whole

__all__ = ["as_data", "read_request", "write_result"]

FORMAT = 1


def write_result(proof: Proof, path: Path) -> None:
    """Write a proof as JSON."""
    text = json.dumps(_writable(as_data(proof)), indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(path, text.encode())


def _writable(value: Any) -> Any:
    """A value for JSON, which has no numbers like NaN: they become texts that ``float`` reads."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {key: _writable(each) for key, each in value.items()}
        case list() | tuple():
            return [_writable(each) for each in value]
    return value


def as_data(proof: Proof) -> dict[str, Any]:
    """A proof as plain data."""
    comparison = proof.comparison
    request = proof.request
    return {
        "format": FORMAT,
        "verdict": None if comparison is None else comparison.verdict.value,
        "sentence": None if comparison is None else comparison.sentence,
        "is_same": proof.is_same,
        "findings": [
            {"name": each.name, "file": each.file, "line": each.line, "message": each.message, "remedy": each.remedy}
            for each in proof.findings
        ],
        "explanations": list(proof.explanations),
        "comparison": None
        if comparison is None
        else {
            "steps": comparison.steps,
            "step": comparison.step,
            "quantity": comparison.quantity,
            "values": comparison.values,
            "reason": comparison.reason,
            "losses": {"before": list(comparison.before_losses), "after": list(comparison.after_losses)},
            "allowed_relative_difference": list(comparison.allowed),
            "weights_apart": comparison.weights,
            "rounding": comparison.rounding,
        },
        "request": {
            "before": request.before,
            "after": request.after,
            "steps": request.steps,
            "seed": request.seed,
            "timeout": request.timeout,
            "align": request.align,
            "interpreter": sys.executable,
        },
        "scripts": _scripts(request),
        "runs": {each.name: _run(each) for each in (proof.before, proof.after) if each is not None},
        "versions": _versions(),
        "machine": _machine(),
    }


def _run(run: WatchedRun) -> dict[str, Any]:
    return {
        "command": run.command,
        "status": run.status,
        "seconds": round(run.seconds, 3),
        "batch_factor": run.settings.batch_factor,
        "gradient_factor": run.settings.gradient_factor,
        "seen_to_its_end": run.is_complete,
        "error": run.failure,
        "processes": run.record.processes,
        "computed_in": computed_types(run.record.first),
        "updates": [
            {
                "step": each.number,
                "loss": each.mean_loss,
                "samples": each.samples,
                "indices": each.indices,
                "content": each.content,
                "rates": each.rates,
                "optimizer": each.optimizer,
                "exchanges": each.exchanges,
                "device": each.device,
                "type": each.type,
                "weight_types": each.weight_types,
            }
            for each in steps_of(run.record)
        ],
        "weights": {process.rank: process.weights for process in run.record.trained},
        "optimizers": run.record.first.summary.get("optimizers", []),
        "programs": [dict(each) for each in run.record.first.named("program")],
    }


def _scripts(request: Request) -> dict[str, str]:
    """The scripts that the commands name, each with the SHA-256 of its text."""
    words = dict.fromkeys((*(request.before or ()), *request.after))
    paths = [Path(word) for word in words if word.endswith(".py")]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "pilotage": pilotage.__version__}
    for name in ("torch", "numpy", "pilotage-dropins"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _machine() -> dict[str, Any]:
    root = Path("/")
    return {
        "system": platform.platform(),
        "processor": processor_name(text_of(root / "proc/cpuinfo")),
        "cores": usable_cores(root),
        "memory": memory_of(root)[0],
    }


def read_request(path: Path) -> Request:
    """What a result file proves, to do it again."""
    try:
        data = json.loads(path.read_text())
        wanted = data["request"]
        beside = Path(wanted.get("interpreter", sys.executable)).parent
        return Request(
            before=None if wanted["before"] is None else _here(wanted["before"], beside),
            after=_here(wanted["after"], beside),
            steps=int(wanted["steps"]),
            seed=int(wanted["seed"]),
            timeout=float(wanted["timeout"]),
            align=bool(wanted["align"]),
        )
    except OSError as error:
        raise ProofError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError):
        raise ProofError(f"{path} is not a result of `pilotage prove`.") from None


def _here(command: Sequence[str], beside: Path) -> tuple[str, ...]:
    """A command of a result file; Python and launchers that lay beside it are those of this environment."""
    first = Path(command[0])
    if first.parent == beside:
        own = Path(sys.executable)
        return (str(own if first.name.startswith("python") else own.parent / first.name), *command[1:])
    return tuple(command)

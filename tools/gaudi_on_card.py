"""Run the scripts of examples/gaudi on the emulated device, on the CPU and on a CUDA card, and compare their losses.

python tools/gaudi_on_card.py [--on cpu cuda] [--seconds S] [NAME ...]

Each script is a process with its own time limit, and is compared with the plain CPU script that it was made from. Only
torch and numpy are needed: without scikit-learn, generated digits replace its own in all scripts. On CUDA, TF32 is off
and the CPU draws the random numbers, so that dropout is the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gaudi_pieces import PIECES, program

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "examples" / "gaudi"
ALLOWED = {"cpu": 0.0, "cuda": 1e-3}
"""The largest allowed relative difference from the losses of the plain script."""
GENERATED_DIGITS = """
import numpy

def load_digits(return_X_y=True):
    generator = numpy.random.default_rng(0)
    labels = generator.integers(0, 10, 1797)
    patterns = generator.uniform(0, 16, (10, 64))
    return numpy.clip(patterns[labels] + generator.normal(0, 4, (1797, 64)), 0, 16).round(), labels
"""


@dataclass(frozen=True)
class Pair:
    """A plain script and the command lines of its Gaudi version."""

    plain: str
    gaudi: tuple[str, ...]
    processes: int = 1
    differs: float = 0.0
    """How far the losses of the Gaudi version are from those of the plain script, even on the CPU."""


PAIRS = {
    "mnist": Pair(
        "mnist_cpu.py --epochs 3 --lr 0.2",
        ("mnist_hpu.py --epochs 3 --lr 0.2", "mnist_hpu.py --epochs 3 --lr 0.2 --lazy"),
    ),
    "transformer": Pair(
        "transformer_cpu.py --steps 40 --log-every 5",
        ("transformer_hpu.py --steps 40 --log-every 5", "transformer_hpu.py --steps 40 --log-every 5 --graphs"),
        differs=1e-4,
    ),
    "ddp": Pair("ddp_cpu.py --epochs 2", ("ddp_hpu.py --epochs 2",), processes=2),
}


@dataclass(frozen=True)
class Ended:
    """The losses that a script printed, or why it failed."""

    losses: list[float]
    seconds: float
    failure: str = ""


def main() -> int:
    """Run all scripts; the status is 0 if all losses are equal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(PAIRS)} (default: all)")
    parser.add_argument(
        "--on", nargs="+", choices=list(ALLOWED), help="what computes (default: cpu, and cuda if present)"
    )
    parser.add_argument("--seconds", type=float, default=150, help="time limit of one script (150)")
    parser.add_argument(
        "--at-once", type=int, default=max(1, len(os.sched_getaffinity(0)) // 3), help="scripts to run in parallel"
    )
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in PAIRS]:
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(PAIRS)}")
    names = arguments.names or list(PAIRS)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.at_once) as pool:
        environment = _environment(Path(folder))
        places = arguments.on or _places()
        # Build the device first, which takes half a minute; the scripts then find it in the cache.
        if built := _run([sys.executable, "-c", "import habana_frameworks.torch.core"], environment, 180).failure:
            print(built)
            return 1
        if "cuda" in places and not arguments.names:
            _try_pieces({**environment, "PILOTAGE_HPU_ON": "cuda"}, pool)
        jobs: dict[tuple[str, str], Future[Ended]] = {}
        for name in names:
            pair = PAIRS[name]
            jobs[pair.plain, ""] = pool.submit(_script, pair.plain, pair.processes, environment, arguments.seconds)
            for place in places:
                over = {**environment, "PILOTAGE_HPU_ON": place}
                for line in pair.gaudi:
                    jobs[line, place] = pool.submit(_script, line, pair.processes, over, arguments.seconds)
        return _report(names, places, {key: job.result() for key, job in jobs.items()})


def _try_pieces(environment: dict[str, str], pool: ThreadPoolExecutor) -> None:
    """Print which parts of the emulation work on CUDA, before whole scripts run."""
    commands = {piece: [sys.executable, "-c", program(piece)] for piece in PIECES}
    jobs = {piece: pool.submit(_run, command, environment, 90) for piece, command in commands.items()}
    for piece, job in jobs.items():
        failure = job.result().failure
        print(f"{piece}: {'FAILED, ' + failure if failure else 'works'}", flush=True)


def _places() -> list[str]:
    import torch

    return list(ALLOWED) if torch.cuda.is_available() else ["cpu"]


def _environment(folder: Path) -> dict[str, str]:
    paths = [ROOT / "src", ROOT / "dropins" / "src", SCRIPTS]
    if importlib.util.find_spec("sklearn") is None:
        (folder / "sklearn").mkdir()
        (folder / "sklearn" / "__init__.py").touch()
        (folder / "sklearn" / "datasets.py").write_text(GENERATED_DIGITS)
        paths.append(folder)
        print("scikit-learn is not installed: generated digits replace its own.")
    fixed = {
        "PYTHONPATH": os.pathsep.join([*map(str, paths), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "OMP_NUM_THREADS": "1",
        "PYTHONFAULTHANDLER": "1",
        "PILOTAGE_HPU_ON": "cpu",
        "PILOTAGE_HPU_RANDOM": "cpu",
        "NVIDIA_TF32_OVERRIDE": "0",
        "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo"),
    }
    return {**os.environ, **fixed}


def _script(line: str, processes: int, environment: dict[str, str], seconds: float) -> Ended:
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"] if processes > 1 else []
    mode = {"PT_HPU_LAZY_MODE": "1"} if "--graphs" in line else {}
    return _run([sys.executable, *launcher, *line.split()], {**environment, **mode}, seconds)


def _run(command: list[str], environment: dict[str, str], seconds: float) -> Ended:
    start = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        # A new session, so that a script is killed together with the processes that it started.
        process = subprocess.Popen(
            command, cwd=SCRIPTS, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            status = f"status {process.wait(seconds)}"
        except subprocess.TimeoutExpired:
            status = f"took longer than {seconds:.0f} s"
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        text = output.read()
    took = time.monotonic() - start
    if process.returncode != 0:
        return Ended([], took, f"{status}\n{text[-3000:]}")
    return Ended([float(loss) for loss in re.findall(r"loss ([0-9.]+)", text)], took)


def _report(names: list[str], places: list[str], ended: dict[tuple[str, str], Ended]) -> int:
    failures = [f"{line} {place}: {each.failure}" for (line, place), each in ended.items() if each.failure]
    print(f"{'script':<52} {'on':<5} {'losses':>6} {'last loss':>11} {'difference':>11} {'allowed':>8} {'time':>6}")
    is_equal = not failures
    for name in names:
        plain = ended[PAIRS[name].plain, ""]
        print(_row(PAIRS[name].plain, "plain", plain, "", ""))
        for line in PAIRS[name].gaudi:
            for place in places:
                gaudi = ended[line, place]
                difference = _difference(plain.losses, gaudi.losses)
                allowed = max(ALLOWED[place], PAIRS[name].differs)
                is_equal &= difference <= allowed
                print(_row(line, place, gaudi, f"{difference:.1e}", f"{allowed:.0e}"))
    print("All losses are equal." if is_equal else "NOT all losses are equal.")
    for failure in failures:
        print(f"\n== {failure}")
    return 0 if is_equal else 1


def _row(line: str, place: str, ended: Ended, difference: str, allowed: str) -> str:
    last = f"{ended.losses[-1]:.6f}" if ended.losses else "failed"
    return (
        f"{line:<52} {place:<5} {len(ended.losses):>6} {last:>11} {difference:>11} {allowed:>8} {ended.seconds:>4.0f} s"
    )


def _difference(plain: list[float], gaudi: list[float]) -> float:
    if not plain or len(plain) != len(gaudi):
        return float("inf")
    return max(abs(one - other) / abs(one) for one, other in zip(plain, gaudi, strict=True))


if __name__ == "__main__":
    sys.exit(main())

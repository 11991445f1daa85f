"""How far CosmicTagger's losses in float32 stray from float64 within 20 steps, in torch and in TensorFlow.

Without TensorFlow, torch alone is measured: how far any program in float32 strays can be seen there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from benchmarks.report import Row, Table
from cosmictagger.configuration.choices import LossBalanceScheme, Precision
from cosmictagger.configuration.mode import Optimizer
from cosmictagger.configuration.network import PRESETS, Network
from cosmictagger.data.events import Batch
from cosmictagger.data.generator.file import generated_file
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.devices.eager import EagerExecutor
from cosmictagger.devices.executor import Executor
from cosmictagger.devices.setup import NetworkSetup
from cosmictagger.networks.uresnet import build
from cosmictagger.processes.process_group import Processes
from cosmictagger.training.precision import NUMBER_TYPES
from pilotage.engine import TorchDispatchMode

STEPS, EVENTS, IMAGES = 20, 40, 2
DEPTH, DEEPEST, DOWNSAMPLE = 2, 8, 5
RATE = 1e-4
"""Where the default schedule begins; with the published data, its first 20 steps are at 1e-4 to 1.002e-4."""

CASES = tuple((network, scheme) for network in ("a21", "uresnet") for scheme in ("focal", "light"))
LAST_DIGITS = {"float64": 2.0**-53, "float32": 2.0**-24}
"""What a number may be rounded by, relative to itself."""

DRAWS = 5
"""How many times weights are rounded at random: a single draw may have little effect by chance."""

MANY = 4000
"""Results with at least this many numbers are activations or their gradients; smaller ones are sums or statistics."""

MILLIONTHS = 1e6
FOLDER = Path("output/benchmarks")


def measure(device: str, rounds: int) -> Table:
    """The largest difference from torch in float64 among the losses of 20 steps."""
    command = ".venv-tensorflow/bin/python -m benchmarks --device cpu --only cosmic_frameworks"
    title = f"Losses of {STEPS} steps, depth {DEPTH}, downsample {DOWNSAMPLE}: largest difference from torch in float64"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with EventFile(generated_file(FOLDER, events=EVENTS, seed=1)) as file:
        batches = [file.dense_batch([IMAGES * step, IMAGES * step + 1], DOWNSAMPLE) for step in range(STEPS)]
    rows, worst, compares = [], 0.0, find_spec("tensorflow") is not None
    for name, scheme in CASES:
        case = _Case(name, scheme, batches)
        strayed = _strayed_in_torch(case)
        if compares:
            strayed |= _strayed_in_tensorflow(case)
            worst = max(worst, strayed["TensorFlow, float64"])
        rows += [Row(f"{name}, {scheme}: {who}", far * MILLIONTHS, "millionths") for who, far in strayed.items()]
    torch.set_num_threads(threads)
    verdict = f"TensorFlow in float64 is at most {worst:.1e} from torch in float64."
    if not compares:
        verdict = "TensorFlow was not compared, as it is not installed: make test-tensorflow installs it."
    return Table(title=title, command=command, rows=rows, verdict=verdict)


class _Case:
    """A network and a loss, with the same initial weights for everybody."""

    def __init__(self, name: str, scheme: str, batches: Sequence[Batch]) -> None:
        self.network: Network = replace(PRESETS[name], depth=DEPTH, bottleneck_deepest=DEEPEST)
        self.scheme, self.batches = LossBalanceScheme[scheme], batches
        torch.manual_seed(0)
        self.weights = {name: values.clone() for name, values in build(self.network).state_dict().items()}

    @cached_property
    def exact(self) -> list[float]:
        """The losses of torch in float64."""
        return self.losses(self.in_torch(Precision.float64))

    @cached_property
    def single(self) -> list[float]:
        """The losses of torch in float32."""
        return self.losses(self.in_torch(Precision.float32))

    @cached_property
    def rounded(self) -> list[float]:
        """The losses of the best float32."""
        return _best_float32(self)

    def in_torch(self, precision: Precision, weights: Mapping[str, Tensor] | None = None) -> EagerExecutor:
        """The torch trainer."""
        setup = self._setup(precision, weights or self.weights)
        return EagerExecutor(setup.network, setup.optimizer(), setup.scheme, setup.numbers, torch.device("cpu"))

    def in_tensorflow(self, precision: Precision) -> Executor:
        """The TensorFlow trainer."""
        from cosmictagger.tensorflow.executor import TensorflowExecutor

        return TensorflowExecutor(self._setup(precision, self.weights), self.network)

    def _setup(self, precision: Precision, weights: Mapping[str, Tensor]) -> NetworkSetup:
        numbers = NUMBER_TYPES[precision]
        network = build(self.network, numbers.activations).to(numbers.weights)
        network.load_state_dict(weights)
        settings = Optimizer(loss_balance_scheme=self.scheme)
        return NetworkSetup(network=network, numbers=numbers, settings=settings, processes=Processes(), trains=True)

    def losses(self, trainer: Executor) -> list[float]:
        """The loss of each step."""
        return [trainer.train([batch], RATE).loss for batch in self.batches]


class _Rounding(TorchDispatchMode):
    """Rounds activations and their gradients to float32, as the best program in float32 would."""

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Sequence[Any] = (), options: Mapping[str, Any] | None = None
    ) -> Any:
        found = function(*arguments, **(options or {}))
        given = [each for each in (*arguments, *(options or {}).values()) if isinstance(each, Tensor)]
        memory = {each.untyped_storage().data_ptr() for each in given}
        for each in found if isinstance(found, tuple | list) else (found,):
            if not isinstance(each, Tensor) or each.dtype is not torch.float64 or each.numel() < MANY:
                continue
            # A view of an argument does not count as a result.
            if each.untyped_storage().data_ptr() not in memory or any(each is one for one in given):
                each.copy_(each.float())
        return found


def _best_float32(case: _Case) -> list[float]:
    """The losses if every operation is exact, and only activations, their gradients and weights are rounded."""
    trainer, found = case.in_torch(Precision.float64), []
    for batch in case.batches:
        with _Rounding():  # type: ignore[no-untyped-call]
            found.append(trainer.train([batch], RATE).loss)
        with torch.no_grad():
            for parameter in trainer.network.parameters():
                parameter.copy_(parameter.float())
    return found


def _by_two_threads(case: _Case) -> list[float]:
    """The losses of torch in float32 with its sums in another order."""
    torch.set_num_threads(2)
    try:
        return case.losses(case.in_torch(Precision.float32))
    finally:
        torch.set_num_threads(1)


def _strayed_in_torch(case: _Case) -> dict[str, float]:
    """What changes the losses of torch in float64, and how much."""
    found = {
        "torch, float32": _distance(case.single, case.exact),
        "torch, float64, every result rounded to float32": _distance(case.rounded, case.exact),
        "every result rounded, from torch in float32": _distance(case.rounded, case.single),
        "torch, float32, two threads, from one thread": _distance(_by_two_threads(case), case.single),
        "torch, float64, from weights changed in float64's last digit": _far_with_changed_weights(case, "float64", 0),
    }
    draws = [_far_with_changed_weights(case, "float32", seed) for seed in range(DRAWS)]
    for which, far in (("least", min(draws)), ("median", median(draws)), ("largest", max(draws))):
        found[f"torch, float64, from weights changed in float32's last digit, {which} of {DRAWS} draws"] = far
    return found


def _strayed_in_tensorflow(case: _Case) -> dict[str, float]:
    """The same of TensorFlow, and the errors of both frameworks' gradients."""
    double, single = (case.losses(case.in_tensorflow(kind)) for kind in (Precision.float64, Precision.float32))
    theirs, ours = zip(*_gradient_errors(case), strict=True)
    return {
        "TensorFlow, float64": _distance(double, case.exact),
        "TensorFlow, float32": _distance(single, case.exact),
        "TensorFlow, float32, from torch in float32": _distance(single, case.single),
        "gradient at equal weights, torch, float32, median": median(theirs),
        "gradient at equal weights, TensorFlow, float32, median": median(ours),
    }


def _far_with_changed_weights(case: _Case, kind: str, seed: int) -> float:
    """How far the losses of torch in float64 move if its initial weights are changed at random in their last digit."""
    torch.manual_seed(seed)
    weights = {name: _rounded(values, LAST_DIGITS[kind]) for name, values in case.weights.items()}
    return _distance(case.losses(case.in_torch(Precision.float64, weights)), case.exact)


def _distance(one: Sequence[float], other: Sequence[float]) -> float:
    return max(abs(mine - theirs) for mine, theirs in zip(one, other, strict=True))


def _rounded(values: Tensor, digit: float) -> Tensor:
    """Numbers changed at random by at most a share of themselves."""
    if not values.is_floating_point():
        return values
    return values.double() * (1.0 + digit * (2.0 * torch.rand_like(values.double()) - 1.0))


def _gradient_errors(case: _Case) -> Iterator[tuple[float, float]]:
    """How far the gradients of each step are from float64, in torch and in TensorFlow, at torch's float32 weights."""
    leader, double, single = (case.in_torch(kind) for kind in (Precision.float32, Precision.float64, Precision.float32))
    trainers = (double, single, case.in_tensorflow(Precision.float32))
    for batch in case.batches:
        weights = leader.state()["state_dict"]
        exact, theirs, ours = (_gradients(trainer, weights, batch) for trainer in trainers)
        yield float((theirs - exact).norm() / exact.norm()), float((ours - exact).norm() / exact.norm())
        leader.train([batch], RATE)


def _gradients(trainer: Executor, weights: Mapping[str, Tensor], batch: Batch) -> Tensor:
    """All gradients at some weights: an update at rate 0 adds a tenth of them to nine tenths of Adam's first moment."""
    before = _first_moments(trainer)
    trainer.restore({"state_dict": weights})
    trainer.train([batch], 0.0)
    return 10.0 * _first_moments(trainer) - 9.0 * before


def _first_moments(trainer: Executor) -> Tensor:
    moments = trainer.state()["optimizer"]["state"].values()
    return torch.cat([moment["exp_avg"].double().flatten() for moment in moments]) if moments else torch.zeros(1)

"""Updates that a script makes itself: the backward passes and the steps of optimizers."""

from __future__ import annotations

import inspect
import math
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from pilotage.proof.watching.ahead import LoadedAhead
from pilotage.proof.watching.lines import users_line
from pilotage.proof.watching.modules import ModuleWatch
from pilotage.proof.watching.optimizers import OptimizerWatch, has_gradients, parameters_of
from pilotage.proof.watching.patching import replace_function
from pilotage.proof.watching.precision import last_product_type, type_name, weight_types
from pilotage.proof.watching.random_numbers import reseed
from pilotage.proof.watching.splitting.check import SplitCheck
from pilotage.proof.watching.watch import Watch

__all__ = ["UpdateWatch"]


class UpdateWatch:
    """Follows backward passes and optimizers of this process.

    Large because it keeps what it knows about the last update: most updates are like the one before.
    """

    def __init__(self, watch: Watch, optimizers: OptimizerWatch, modules: ModuleWatch, split: SplitCheck) -> None:
        self._watch = watch
        self._optimizers = optimizers
        self._modules = modules
        self._split = split
        self._ahead = LoadedAhead()
        self._is_backward = False
        self._scaled: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()
        """The losses behind scaled ones, by the address of the scaled one."""
        self._is_scaling = False
        """Whether any loss was scaled."""
        self._without_step = 0
        """Backward passes that no optimizer has followed."""
        self._line: str | None = None
        self._device = "unknown"
        """Where the last loss was computed."""
        self._product: torch.dtype | None = None
        """The type of the last product before it, if that is known."""
        self._first_types: tuple[int | None, list[torch.dtype]] = (None, [])
        """The types of the first weights of all groups of the last optimizer."""
        self._weight_types: list[str] = []
        """The types of all its weights."""
        self._is_split_due = False
        """Whether an update was made inside of a backward pass, so that nothing is recorded before that ends."""
        self._closed: tuple[Any, ...] = ()
        """The values of `_facts`, to be compared with those of the next update."""
        self._facts: dict[str, Any] = {}
        """What is known about the last update, kept as long as it stays the same."""
        self._before: Any = None
        """The hook before the steps of optimizers, as long as it is needed."""
        self._together: list[torch.optim.Optimizer] = []
        """Optimizers that have gradients before the first update, and no parameter in common."""
        self._last: tuple[int, list[torch.optim.Optimizer]] = (0, [])
        """The number of the last update that the script has made itself, and the optimizers that have made it.

        Nothing once gradients are computed that belong to no recorded update.
        """

    def install(self) -> None:
        """Follow updates from now on."""
        replace_function(torch.autograd, "backward", self._backward)
        replace_function(torch.autograd, "grad", self._grad)
        replace_function(torch.amp.GradScaler, "scale", self._scale)
        self._before = register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)
        replace_function(torch.optim.Optimizer, "zero_grad", self._zero_grad)
        replace_function(nn.Module, "load_state_dict", self._load_state_dict)
        self._follow_data()
        self._watch.summaries.append(lambda: {"backward_without_step": self._without_step})

    def _load_state_dict(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def load_state_dict(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self._watch.is_undigested:
                self._watch.expect_change(is_counted=True)
            return original(module, *args, **kwargs)

        return load_state_dict

    def _follow_data(self) -> None:
        """Follow accesses to ``data``: torch does not count writes through it."""
        inherited: Any = inspect.getattr_static(Tensor, "data")
        watch = self._watch

        def get(parameter: nn.Parameter) -> Any:
            value = inherited.__get__(parameter)
            if watch.is_undigested:
                watch.expect_change(value)
            return value

        def put(parameter: nn.Parameter, value: Tensor) -> None:
            if watch.is_undigested:
                watch.expect_change()
            inherited.__set__(parameter, value)

        nn.Parameter.data = property(get, put, doc=inherited.__doc__)  # type: ignore[assignment]

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self._is_backward or self._watch.is_in_program:
                return original(tensors, *args, **kwargs)
            self._is_backward = True
            try:
                if self._watch.is_stopping:
                    self._last = (0, [])
                else:
                    self._note(tensors, args[0] if args else kwargs.get("grad_tensors"))
                return original(tensors, *args, **kwargs)
            finally:
                self._is_backward = False
                if self._is_split_due:
                    self._is_split_due = False
                    self._split.after_update()

        return backward

    def _grad(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            # Often a generator of parameters, which can be read once.
            inputs = inputs if isinstance(inputs, Tensor) else tuple(inputs)
            found = original(outputs, inputs, *args, **kwargs)
            if self._watch.is_stopping:
                self._last = (0, [])
            elif not (self._is_backward or self._watch.is_in_program):
                self._note_asked(outputs, inputs)
            return found

        return grad

    def _note_asked(self, outputs: Any, inputs: Any) -> None:
        """Keep a loss whose gradients a script may write into its parameters itself, instead of calling backward."""
        root = outputs if isinstance(outputs, Tensor) else (outputs[0] if len(outputs) else None)
        given = (inputs,) if isinstance(inputs, Tensor) else inputs
        is_trained = any(isinstance(each, nn.Parameter) for each in given)
        pending = self._watch.pending
        if is_trained and isinstance(root, Tensor) and root.numel() == 1 and not pending.backwards:
            loss = self._scaled.get(id(root), root) if self._is_scaling else root
            pending.asked = [*pending.asked, loss.detach().clone()]

    def _note_product(self, values: Any, gradients: Any) -> None:
        """Keep the scalar whose gradients a backward pass from several values computes."""
        pending = self._watch.pending
        if pending.backwards or not isinstance(values, Tensor) or not isinstance(gradients, Tensor):
            return
        if values.is_floating_point() and values.shape == gradients.shape:
            pending.asked = [*pending.asked, (values.detach() * gradients.detach()).sum()]

    def _note(self, tensors: Any, gradients: Any) -> None:
        root, *others = (tensors,) if isinstance(tensors, Tensor) else (*tensors, None)
        if not isinstance(root, Tensor) or root.numel() != 1:
            self._note_product(root, gradients)
            return
        loss = self._scaled.get(id(root), root) if self._is_scaling else root
        for each in others:
            # Backward from several losses is backward from their sum.
            if isinstance(each, Tensor) and each.numel() == 1:
                loss = loss.detach() + each.detach().to(loss.device)
        pending = self._watch.pending
        # Reading the number would wait for the card.
        if loss.is_cpu:
            self._device = "cpu"
            pending.losses.append(loss.item())
        else:
            self._device = loss.device.type
            pending.losses.append(loss.detach().clone())
        pending.backwards += 1
        self._product = last_product_type(root)
        if pending.batches:
            self._ahead.at_backward(pending, self._modules.given, self._modules.rows, self._modules.inputs)
        if not self._split.is_over:
            self._split.at_backward(root, pending.facts, self._modules.outermost, self._modules.inputs)
        if not self._modules.is_over:
            self._modules.at_backward(root, pending.facts)
            if others[1:]:
                # The loss that the module returned may be one of the others.
                pending.facts.pop("misses_returned_loss", None)
        self._without_step += 1
        if self._line is None or self._watch.is_digested:
            self._line = users_line()

    def _scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def scale(scaler: Any, outputs: Any) -> Any:
            scaled = original(scaler, outputs)
            if isinstance(outputs, Tensor) and isinstance(scaled, Tensor) and scaled is not outputs:
                self._scaled[id(scaled)] = outputs
                self._is_scaling = True
            return scaled

        return scale

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        watch = self._watch
        if watch.is_in_program:
            return
        is_ready = has_gradients(optimizer)
        if not watch.has_start and (is_ready or _is_given_closure(args, kwargs)):
            # Inside of a backward pass, other optimizers get their gradients later.
            others = self._optimizers.all() if self._is_backward else self._optimizers.with_gradients()
            self._together = _apart([optimizer, *others])
            watch.before_update(self._weights_of(optimizer))
        if not is_ready:
            return
        if watch.settings.gradient_factor != 1.0:
            _scale_gradients(optimizer, watch.settings.gradient_factor)
        if watch.settings.noise:
            _add_noise_to_gradients(optimizer, watch.settings.noise, watch.settings.seed, watch.updates)

    def _after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        watch = self._watch
        if watch.is_in_program:
            return
        works = has_gradients(optimizer)
        number, rates = self._optimizers.stepped(optimizer, works=works)
        if not works and not watch.pending.backwards:
            return
        if watch.is_digested:
            self._line = users_line()
        if works:
            watch.weights = self._weights_of(optimizer)
            if watch.settings.noise:
                _add_noise(optimizer, watch.settings.noise, watch.settings.seed, watch.updates)
        self._without_step = 0
        if self._before is not None and watch.has_start and not watch.settings.changes_gradients:
            self._before.remove()
            self._before = None
        if works:
            watch.versions = [each._version for each in _parameters(self._changed_by(optimizer))]
        if works and self._is_part_of_last(optimizer):
            self._last[1].append(optimizer)
            watch.join(rates)
            return
        if not watch.pending.backwards:
            self._note_without_backward(optimizer)
        self._last = (watch.updates + 1, [optimizer])
        self._close(optimizer, number, rates, works=works)

    def _note_without_backward(self, optimizer: torch.optim.Optimizer) -> None:
        """Note what is known of an update whose gradients came from elsewhere, such as ``torch.autograd.grad``."""
        pending = self._watch.pending
        self._device, self._product = next(parameters_of(optimizer)).device.type, None
        pending.losses = list(pending.asked)
        if pending.batches:
            self._ahead.at_backward(pending, self._modules.given, self._modules.rows, self._modules.inputs)

    def _is_part_of_last(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether a step uses the gradients that the step before, of another optimizer, has used.

        Scripts with an encoder and a decoder, for example, often give each an optimizer of its own.
        """
        number, optimizers = self._last
        is_next = self._watch.updates == number and not self._watch.pending.backwards
        return bool(number) and is_next and not any(each is optimizer for each in optimizers)

    def _changed_by(self, optimizer: torch.optim.Optimizer) -> list[torch.optim.Optimizer]:
        """The optimizers whose weights are digested after a step of this one."""
        return self._together if any(each is optimizer for each in self._together) else [optimizer]

    def _weights_of(self, optimizer: torch.optim.Optimizer) -> Callable[[], Iterator[tuple[str, Tensor]]]:
        optimizers = self._changed_by(optimizer)
        return lambda: _named(_parameters(optimizers))

    def _zero_grad(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def zero_grad(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            # Gradients that are thrown away: nothing was updated, and the step is over.
            if self._watch.pending.backwards and has_gradients(optimizer) and not self._watch.is_in_program:
                self._close(optimizer, None, [], works=False)
            return original(optimizer, *args, **kwargs)

        return zero_grad

    def _close(self, optimizer: torch.optim.Optimizer, number: int | None, rates: list[float], *, works: bool) -> None:
        watch = self._watch
        later, early = self._ahead.leave_out(watch.pending)
        if not watch.pending.batches or self._ahead.is_ahead:
            reseed(watch.settings.seed, watch.updates + 1, 0)
        first = (number, [each.dtype for group in optimizer.param_groups for each in group["params"][:1]])
        if first != self._first_types or watch.is_digested:
            # Looking at all weights in each step would take longer than all else here.
            self._first_types, self._weight_types = first, [*map(type_name, weight_types(optimizer))]
        weights = self._weight_types
        closed = (number, rates, works, self._line, self._device, self._product, weights)
        if closed != self._closed:
            self._closed = closed
            self._facts = {
                "optimizer": number,
                "rates": rates,
                "works": works,
                "line": self._line,
                "device": self._device,
                "product": None if self._product is None else type_name(self._product),
                "weights": weights,
                "mode": "eager",
            }
        watch.close(self._facts)
        if later:
            watch.pending.batches[:0] = later
            watch.pending.used = early
        if not self._split.is_over:
            if self._is_backward:
                self._is_split_due = True
            else:
                self._split.after_update()


def _is_given_closure(args: Any, kwargs: Any) -> bool:
    """Whether a step computes its gradients itself, by a function that it is given."""
    return any(callable(each) for each in (*args[1:], *kwargs.values()))


def _apart(optimizers: Sequence[torch.optim.Optimizer]) -> list[torch.optim.Optimizer]:
    """The first of these optimizers, and all others that have no parameter in common with those before them."""
    found: list[torch.optim.Optimizer] = []
    seen: set[int] = set()
    for each in optimizers:
        own = set(map(id, parameters_of(each)))
        if not own & seen:
            found.append(each)
            seen |= own
    return found


def _parameters(optimizers: Iterable[torch.optim.Optimizer]) -> list[Tensor]:
    # As a list, not as a generator: this is asked in each step.
    found = [each for optimizer in optimizers for group in optimizer.param_groups for each in group["params"]]
    distributed = sys.modules.get("torch.distributed.tensor")
    # Each process has a part of these, and looking at the whole would be an exchange.
    return found if distributed is None else [each for each in found if not isinstance(each, distributed.DTensor)]


def _named(parameters: Iterable[Tensor]) -> Iterator[tuple[str, Tensor]]:
    return ((str(number), each) for number, each in enumerate(parameters))


@torch.no_grad()
def _scale_gradients(optimizer: torch.optim.Optimizer, factor: float) -> None:
    for parameter in parameters_of(optimizer):
        if parameter.grad is not None:
            parameter.grad *= factor


_UNITS_OF_A_GRADIENT = 8
"""A gradient sums many products, so its error is several units of rounding, relative to the gradients around it."""


@torch.no_grad()
def _add_noise_to_gradients(optimizer: torch.optim.Optimizer, size: float, seed: int, update: int) -> None:
    """Change gradients by about their errors of rounding.

    Some gradients consist only of such errors, for example that of a bias before batch normalisation, and Adam turns
    them into full steps. Gradients that are exactly zero stay so: those of unused rows of an embedding have no error.
    """
    generator = torch.Generator().manual_seed(seed * 7907 + update + 1)
    gradients = [each.grad for each in parameters_of(optimizer) if each.grad is not None and not each.grad.is_sparse]
    count = sum(each.numel() for each in gradients)
    scale = math.sqrt(sum(float(each.double().square().sum()) for each in gradients) / max(count, 1))
    if not math.isfinite(scale):
        return
    for each in gradients:
        drawn = torch.rand(each.shape, generator=generator).to(each.device, each.dtype)
        each += (each != 0) * (2 * drawn - 1) * (size * scale * _UNITS_OF_A_GRADIENT)


@torch.no_grad()
def _add_noise(optimizer: torch.optim.Optimizer, size: float, seed: int, update: int) -> None:
    """Change each weight by about one unit of rounding, so that a second run shows what rounding does."""
    generator = torch.Generator().manual_seed(seed * 7919 + update + 1)
    for parameter in parameters_of(optimizer):
        if parameter.is_floating_point():
            drawn = torch.rand(parameter.shape, generator=generator).to(parameter.device, parameter.dtype)
            parameter.mul_(1 + size * (2 * drawn - 1))

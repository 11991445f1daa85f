"""The entries of torch's own databases, and samples of each as cases that can be run.

The databases take seconds to import, so they are imported only when needed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any
from unittest import mock

import torch
from torch import nn

from sweep.cases import Case

OTHER_TYPES = (torch.complex64, torch.int64, torch.bool, torch.float8_e4m3fn)
"""Types for operations without float32, in order of preference."""


@dataclass(frozen=True)
class Entry:
    """One entry of a database."""

    kind: str
    """The kind of database: operation or module."""

    name: str
    dtypes: frozenset[torch.dtype]
    differentiates: bool
    make: Callable[[torch.dtype, bool], Iterator[Case]]
    """Makes samples of a type, with or without gradients."""

    def cases(
        self, dtype: torch.dtype = torch.float32, *, gradients: bool = False, limit: int | None = None
    ) -> list[Case]:
        """Some samples of a type; none if the entry does not support it."""
        chosen = self._type(dtype)
        if chosen is None or (gradients and not self._has_gradient(chosen)):
            return []
        from torch.testing._internal.common_utils import set_rng_seed

        set_rng_seed(0)
        return list(islice(self.make(chosen, gradients), limit))

    def _has_gradient(self, dtype: torch.dtype) -> bool:
        return self.differentiates and (dtype.is_floating_point or dtype.is_complex) and dtype.itemsize > 1

    def _type(self, dtype: torch.dtype) -> torch.dtype | None:
        if dtype in self.dtypes:
            return dtype
        others = OTHER_TYPES if dtype is torch.float32 else ()
        return next((other for other in others if other in self.dtypes), None)


def operations() -> list[Entry]:
    """The entries of the database of operations."""
    from torch.testing._internal.common_methods_invocations import op_db

    return [
        Entry(
            kind="operation",
            name=info.full_name,
            dtypes=frozenset(info.dtypes),
            differentiates=info.supports_autograd,
            make=lambda dtype, gradients, info=info: _operation_cases(info, dtype, gradients),
        )
        for info in op_db
    ]


def modules() -> list[Entry]:
    """The entries of the database of modules."""
    from torch.testing._internal.common_modules import module_db

    return [
        Entry(
            kind="module",
            name=info.name,
            dtypes=frozenset((*info.dtypes, torch.float16)),
            differentiates=True,
            make=lambda dtype, gradients, info=info: _module_cases(info, dtype, gradients),
        )
        for info in module_db
    ]


def entries() -> list[Entry]:
    """All entries."""
    return [*operations(), *modules()]


@contextmanager
def no_seed_setter() -> Iterator[None]:
    """Skip the seeding of random operations: the database seeds before each call, which a program refuses."""
    from torch.testing._internal import common_methods_invocations

    plain = mock.patch.object(
        common_methods_invocations, "wrapper_set_seed", lambda function, *a, **k: function(*a, **k)
    )
    with plain:
        yield


def _operation_cases(info: Any, dtype: torch.dtype, gradients: bool) -> Iterator[Case]:
    # Not info.sample_inputs: it inspects the whole stack, which is very slow under pytest.
    for number, sample in enumerate(info.sample_inputs_func(info, "cpu", dtype, gradients)):
        yield Case.of(
            entry=info.full_name,
            number=number,
            call=info.op,
            arguments=((sample.input, *sample.args), sample.kwargs),
            finish=sample.output_process_fn_grad,
        )


def _module_cases(info: Any, dtype: torch.dtype, gradients: bool) -> Iterator[Case]:
    number = 0
    for training in (True, False) if info.train_and_eval_differ else (True,):
        for sample in info.module_inputs_func(
            info, device="cpu", dtype=dtype, requires_grad=gradients, training=training
        ):
            if sample.forward_input is None:
                continue
            module = _made(info.module_cls, sample.constructor_input, dtype)
            arguments = (sample.forward_input.args, sample.forward_input.kwargs)
            if info.is_lazy:
                module(*copy.deepcopy(arguments[0]), **copy.deepcopy(arguments[1]))
            yield Case.of(entry=info.name, number=number, call=module.train(training), arguments=arguments)
            number += 1


def _made(kind: type[nn.Module], given: Any, dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(0)
    return kind(*given.args, **given.kwargs).to(dtype)

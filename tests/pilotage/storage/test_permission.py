"""Which operations a file may call."""

from __future__ import annotations

import pytest
import torch

from pilotage.errors import ProgramFileError
from pilotage.storage.allowed_operations import ALLOWED, REASONS
from pilotage.storage.permission import TRUSTED, UNTRUSTED, Permission, is_allowed

A = torch.ops.aten


@pytest.mark.parametrize(
    "operation",
    [
        A.from_file.default,
        A.save.default,
        A.set_.source_Tensor,
        A.set_.source_Storage,
        A.set_data.default,
        A.resize_.default,
        A._reshape_alias.default,
        A._print.default,
        A.item.default,
        A._local_scalar_dense.default,
        A.record_stream.default,
        A._pin_memory.default,
        A._cummax_helper.default,
        A._nested_view_from_buffer.default,
        A._sparse_coo_tensor_unsafe.default,
        A._ctc_loss_backward.default,
        A.segment_reduce.default,
        A._fused_adam_.default,
        A.add.out,
        A.empty.out,
        A.add.str,
        A.add.t,
        A.mul.int,
    ],
    ids=str,
)
def test_operations_with_side_effects_are_refused(operation):
    with pytest.raises(ProgramFileError, match=rf"{operation._schema.name}, which a file may not do by default"):
        UNTRUSTED.check(operation)
    TRUSTED.check(operation)
    Permission(operations=frozenset({operation._schema.name})).check(operation)


def test_pure_operations_are_allowed():
    for operation in (A.add.Tensor, A.mm.default, A._foreach_lerp_.Scalar, A.max_pool2d_with_indices_backward.default):
        UNTRUSTED.check(operation)


def test_no_allowed_operation_takes_a_file_a_storage_or_a_stream():
    schemas = [
        getattr(packet, overload)._schema
        for packet in (getattr(A, name, None) for name in sorted(ALLOWED))
        if packet is not None
        for overload in packet.overloads()
        if is_allowed(getattr(packet, overload))
    ]
    assert len(schemas) > 1000
    for schema in schemas:
        for argument in schema.arguments:
            assert not any(word in str(argument.type) for word in ("Storage", "Stream", "Any", "Dict", "__torch__")), (
                schema
            )
            assert argument.name not in ("filename", "file", "path"), schema


def test_a_reason_is_given_only_for_what_is_refused():
    assert not ALLOWED & REASONS.keys()


def test_most_allowed_operations_exist_in_this_torch():
    missing = [name for name in ALLOWED if getattr(A, name, None) is None]
    assert len(missing) < 10, missing

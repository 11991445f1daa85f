"""Kernels loaded from files."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pilotage.compiler.kernels import CudaKernelFacts, whole_numbers

numbers = st.integers(0, 2**31)
grids = st.dictionaries(st.tuples(numbers), st.tuples(numbers, numbers, numbers), max_size=3)


@given(grids=grids, positions=st.lists(st.integers(0, 9), max_size=4), shared=numbers)
def test_the_facts_of_a_kernel_can_be_written_and_read(grids, positions, shared):
    facts = CudaKernelFacts(
        name="triton_poi_0",
        warps=4,
        shared=shared,
        types="OOi",
        scratch=1,
        positions=tuple(positions),
        grids=grids,
    )
    assert CudaKernelFacts.from_data(json.loads(json.dumps(facts.to_data()))) == facts


def test_a_grid_depends_only_on_integers():
    assert whole_numbers((object(), 3, 2.5, True, 7)) == (3, 7)

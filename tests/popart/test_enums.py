from __future__ import annotations

import pytest

import popart
import poptorch
from pilotage.options.choices import Recomputation
from poptorch._options.execution import execution_of


@pytest.mark.parametrize("name", ["MeanReductionStrategy", "SyncPattern", "VariableRetrievalMode", "CommGroupType"])
def test_enums_that_poptorch_has_too_have_the_same_numbers(name):
    ours, theirs = getattr(popart, name), getattr(poptorch, name)
    assert {each.name: each.value for each in ours} == {each.name: each.value for each in theirs}


def test_numbers_of_recomputation_reach_the_program():
    options = poptorch.Options()
    options._Popart.set("autoRecomputation", int(popart.RecomputationType.Pipeline))
    assert execution_of(options, training=True).recomputation is Recomputation.STAGES
    options._Popart.set("autoRecomputation", popart.RecomputationType.NoRecompute)
    assert execution_of(options, training=True).recomputation is Recomputation.NONE


def test_the_mode_of_synthetic_data_is_the_one_that_poptorch_sets():
    options = poptorch.Options().enableSyntheticData(True)
    assert options._Popart.options["syntheticDataMode"] == popart.SyntheticDataMode.RandomNormal
    options._Popart.set("syntheticDataMode", int(popart.SyntheticDataMode.Off))
    assert not execution_of(options, training=True).synthetic_inputs

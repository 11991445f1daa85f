"""Options as plain data."""

from __future__ import annotations

import json

import pytest
import torch

import poptorch
from poptorch._options.text import compiled_settings, options_from_data, options_to_data


def through_text(options):
    return options_from_data(json.loads(json.dumps(options_to_data(options))))


def changed():
    options = poptorch.Options().deviceIterations(3).replicationFactor(4).randomSeed(5)
    options.inputReplicaGrouping(2, poptorch.CommGroupType.Orthogonal)
    options.outputMode(poptorch.OutputMode.EveryN, 2).modelName("net").useIpuModel(True)
    options.anchorTensor("short", "long", poptorch.OutputMode.All)
    options.setAvailableMemoryProportion({"IPU0": 0.5, "IPU1": 0.25})
    options.updatableNamedBuffers(["a", "b"]).showCompilationProgressBar(False).disableModuleNamescope()
    options.Training.gradientAccumulation(7)
    options.Training.accumulationAndReplicationReductionType(poptorch.ReductionType.Sum)
    options.Precision.setPartialsType(torch.half).enableStochasticRounding(True)
    options.TensorLocations.numIOTiles(64)
    options._Popart.set("someOption", {"nested": [1, 2.5, None]})
    return options


def test_options_survive_a_round_trip():
    options = changed()
    assert repr(through_text(options)) == repr(options)
    assert repr(through_text(poptorch.Options())) == repr(poptorch.Options())


def test_options_read_from_a_file_are_not_frozen():
    options = changed()
    options._freeze()
    assert through_text(options).deviceIterations(9).device_iterations == 9


def test_options_of_an_offline_model_run_on_a_device():
    options = through_text(poptorch.Options().useOfflineIpuTarget(2))
    assert options.connection_type == poptorch.ConnectionType.Always
    assert not options.exists("ipu_version")


def test_a_value_that_is_not_plain_data_is_refused():
    options = poptorch.Options()
    options._Popart.set("weird", object())
    with pytest.raises(TypeError, match="cannot be written to a file"):
        options_to_data(options)


def test_compiled_in_settings_are_known():
    before = compiled_settings(poptorch.Options())
    assert compiled_settings(poptorch.Options().deviceIterations(5).outputMode(poptorch.OutputMode.Sum)) == before
    for change in (
        lambda o: o.replicationFactor(2),
        lambda o: o.Training.gradientAccumulation(2),
        lambda o: o.Training.accumulationAndReplicationReductionType(poptorch.ReductionType.Sum),
        lambda o: o.Training.setAutomaticLossScaling(True),
        lambda o: o.Precision.enableStochasticRounding(True),
    ):
        options = poptorch.Options()
        change(options)
        assert compiled_settings(options) != before

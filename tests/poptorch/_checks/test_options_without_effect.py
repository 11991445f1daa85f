import pytest
import torch

import poptorch
from poptorch._checks.options_without_effect import options_without_effect
from poptorch._options.popart import HAVE_EFFECT, PopartSettings
from poptorch.options import Options, TensorLocationSettings
from tools.parity.option_meanings import OPTION_MEANINGS, Meaning

OFF_CHIP = TensorLocationSettings().useOnChipStorage(False)
THROUGH_TILES = TensorLocationSettings().useIOTilesToLoad().useIOTilesToStore()


def changed(change):
    options = Options()
    change(options)
    return options


SET = {
    "setAvailableMemoryProportion": lambda options: options.setAvailableMemoryProportion({"IPU0": 0.5}),
    "syncPattern": lambda options: options.syncPattern(poptorch.SyncPattern.SinglePipeline),
    "useIpuId": lambda options: options.useIpuId(3),
    "logDir": lambda options: options.logDir("/tmp"),
    "enableStableNorm": lambda options: options.enableStableNorm(True),
    "Training.setConvolutionDithering": lambda options: options.Training.setConvolutionDithering(True),
    "TensorLocations.numIOTiles": lambda options: options.TensorLocations.numIOTiles(32),
    "TensorLocations.setWeightLocation": lambda options: options.TensorLocations.setWeightLocation(OFF_CHIP),
    "TensorLocations.setAccumulatorLocation": lambda options: options.TensorLocations.setAccumulatorLocation(OFF_CHIP),
    "_Popart.setEngineOptions": lambda options: options._Popart.setEngineOptions({"opt.internalExchange": "1"}),
    "_Popart.setPatterns": lambda options: options._Popart.setPatterns({"Fusion": True}),
}
"""How to set each option that the parity page lists as stored only."""


@pytest.mark.parametrize("name", SET)
def test_an_option_that_only_an_ipu_reads_is_found(name):
    (found,) = set(options_without_effect(changed(SET[name]), runs_on_host=False))
    assert found.startswith(name)


def test_every_option_that_the_parity_page_calls_stored_only_is_looked_for():
    assert SET.keys() == {row.path for row in OPTION_MEANINGS if row.meaning is Meaning.IPU_ONLY}


def test_the_defaults_and_options_with_an_effect_are_not_listed():
    options = Options().deviceIterations(2).enableExecutableCaching("/tmp").enableProfiling("/tmp")
    options.Precision.setPartialsType(torch.half).enableStochasticRounding(True)
    options.TensorLocations.setOptimizerLocation(OFF_CHIP)
    assert list(options_without_effect(Options(), runs_on_host=True)) == []
    assert list(options_without_effect(options, runs_on_host=False)) == []


def test_some_options_have_an_effect_on_cards_and_none_on_the_processor():
    options = Options()
    options.Precision.setPartialsType(torch.half)
    options.TensorLocations.setActivationLocation(OFF_CHIP).setOptimizerLocation(THROUGH_TILES)
    assert list(options_without_effect(options, runs_on_host=True)) == [
        "TensorLocations.setActivationLocation: useOnChipStorage(False)",
        "TensorLocations.setOptimizerLocation: useIOTilesToLoad",
        "TensorLocations.setOptimizerLocation: useIOTilesToStore",
        "Precision.setPartialsType(torch.half)",
    ]


def test_every_other_option_of_popart_is_listed_by_its_name():
    options = changed(lambda options: options._Popart.set("outlineThreshold", 10.0))
    assert list(options_without_effect(options, runs_on_host=True)) == ["_Popart.set(outlineThreshold)"]


def test_the_list_of_options_with_an_effect_is_what_is_read():
    class Read(dict):
        def get(self, name, default=None):
            names.add(name)
            return default

    names: set[str] = set()
    PopartSettings.read(Read(enableEngineCaching=True))
    assert names | {"cachePath"} == HAVE_EFFECT


def test_the_first_call_logs_one_line_and_later_calls_none(regression, caplog):
    caplog.set_level("INFO", "pilotage")
    options = Options().showCompilationProgressBar(False).logDir("/tmp").enableStableNorm(True)
    model = poptorch.trainingModel(regression, options)
    model(torch.ones(2, 3), torch.ones(2, 2))
    model(torch.ones(2, 3), torch.ones(2, 2))
    (line,) = (text for text in caplog.messages if "no effect" in text)
    assert line == "These options have no effect here: logDir, enableStableNorm."


def test_nothing_is_logged_if_all_options_have_an_effect(regression, caplog):
    caplog.set_level("INFO", "pilotage")
    model = poptorch.inferenceModel(regression, Options().showCompilationProgressBar(False))
    model(torch.ones(2, 3), torch.ones(2, 2))
    assert not [text for text in caplog.messages if "no effect" in text]

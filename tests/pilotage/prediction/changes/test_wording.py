"""Changes are offered in the words of the interface that a script uses."""

from dataclasses import fields

from pilotage.door import execution
from pilotage.prediction.changes.wording import wording_of
from poptorch._options.execution import execution_of
from poptorch.options import Options


def test_a_poptorch_script_gets_poptorch_options():
    words = wording_of(execution_of(Options(), training=True))
    assert words.device_iterations.format(10) == "options.deviceIterations(10)"
    assert "setActivationLocation" in words.activations.format()


def test_a_pilotage_script_gets_arguments_of_training():
    words = wording_of(execution())
    assert words.accumulation.format(4) == "pilotage.training(..., gradient_accumulation=4)"
    assert words.optimizer.format() == "pilotage.training(..., locations={'optimizer': 0})"
    assert not any("options." in getattr(words, each.name) for each in fields(words))

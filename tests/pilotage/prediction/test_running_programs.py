"""Predicting a program that this process has captured."""

import pytest
import torch

from pilotage.errors import PredictionError
from pilotage.optim.following import FollowedOptimizer
from pilotage.options.choices import Tier
from pilotage.options.execution import Execution
from pilotage.prediction.devices import device_model
from pilotage.prediction.prediction import predicted, traced
from pilotage.prediction.running_programs import predict_program
from pilotage.prediction.trace.modules import naming_modules
from pilotage.runtime.executor import Executor


def _executor(module, **options):
    plan = FollowedOptimizer(torch.optim.Adam(module.parameters()), module).first_plan()
    return Executor(module, execution=Execution(backend="cpu", **options), plan=plan)


def test_a_running_program_is_predicted_like_the_program_of_a_script(chain, subject_of):
    executor = _executor(chain())
    call = executor.bind(torch.zeros(8, 64), torch.zeros(8, 64))
    with naming_modules(executor.module):
        executor.compile_for(call)
    (device,) = predict_program(executor, call, "chain", [device_model("bow")]).devices
    expected = predicted(traced(subject_of(), device_model("bow")), device_model("bow"))
    assert device.peak_bytes.value == expected.peak_bytes
    assert device.time.update_seconds.value == pytest.approx(expected.update_seconds)
    assert {each.option.split()[0] for each in device.changes} >= {"device", "replicas", "stages", "recomputation"}
    # These would run forward again.
    assert not {each.option for each in device.changes} & {"half precision", "micro-batch 4"}


def test_the_eager_tier_has_nothing_to_predict(chain):
    executor = _executor(chain(), tier=Tier.EAGER)
    call = executor.bind(torch.zeros(8, 64), torch.zeros(8, 64))
    executor.compile_for(call)
    with pytest.raises(PredictionError, match="captures no program"):
        predict_program(executor, call, "chain", [device_model("bow")])

"""What framework=tensorflow needs and does not have."""

import re

import pytest

from cosmictagger.configuration import tensorflow_rules
from cosmictagger.configuration.checks import BEFORE_IMPORTS, check
from cosmictagger.configuration.compose import configuration
from cosmictagger.errors import ConfigurationError

REFUSED = [
    (["run.compute_mode=GPU"], "run.compute_mode=GPU is not available. Use CPU"),
    (["run.compute_mode=IPU"], "run.compute_mode=IPU is not available. Use CPU"),
    (["run.precision=mixed"], "no run.precision=mixed. Use float32, bfloat16 or float64"),
    (["run.precision=float16"], "no run.precision=float16. Use float32, bfloat16 or float64"),
    (["network=uresnet3d"], "network.conv_mode=conv_3D needs framework=torch"),
    (["network.event_label=true"], "network.event_label=true needs framework=torch"),
    (["network.vertex=true"], "network.vertex=true needs framework=torch"),
    (["mode.quantization_aware=true"], "mode.quantization_aware=true needs framework=torch"),
    (["run.profile=true"], "run.profile=true needs framework=torch"),
    (["run.compute_mode=HPU", "run.lazy_mode=true"], "run.lazy_mode=true needs framework=torch"),
    (["framework.intra_op_parallelism_threads=-1"], "framework.intra_op_parallelism_threads is -1"),
]


def given(*words):
    return configuration(["run.id=x", "framework=tensorflow", *words])


def test_without_tensorflow_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(tensorflow_rules, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError) as refused:
        check(given(), BEFORE_IMPORTS)
    assert "pip install 'pilotage[cosmic-tensorflow]'" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "message"), REFUSED, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_what_tensorflow_does_not_have_here_is_refused(monkeypatch, words, message):
    monkeypatch.setattr(tensorflow_rules, "find_spec", lambda name: name)
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        check(given(*words), BEFORE_IMPORTS)


@pytest.mark.parametrize("mode", ["CPU", "HPU"])
def test_both_networks_are_accepted(monkeypatch, mode):
    monkeypatch.setattr(tensorflow_rules, "find_spec", lambda name: name)
    for network in ("a21", "uresnet", "polaris", "scc21"):
        check(given(f"network={network}", f"run.compute_mode={mode}"), BEFORE_IMPORTS)

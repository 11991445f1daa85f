"""Hydra's flags on the command line."""

import pytest

from cosmictagger.configuration.flags import parse
from cosmictagger.errors import ConfigurationError


@pytest.mark.parametrize("words", [["--config-name", "a21", "run.id=x"], ["run.id=x", "--config-name=a21"]])
def test_both_forms_of_a_value_work(words):
    line = parse(words)
    assert (line.recipe, line.words) == ("a21", ("run.id=x",))


def test_flags_are_distinguished_from_overrides():
    line = parse(["--cfg", "job", "--resolve", "-p", "network", "network=a21"])
    assert (line.cfg, line.resolve, line.package, line.words) == ("job", True, "network", ("network=a21",))
    assert parse(["-m", "network.depth=3,4"]).multirun
    assert parse(["-sc", "install=bash"]).for_hydra
    assert parse(["--help"]).help


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--config-name"], "--config-name needs a name"),
        (["--cfg", "jobs"], "Choose one of: job, hydra, all"),
        (["--resolve"], "use --cfg job"),
        (["--mutlirun"], "Did you mean --multirun"),
        (["--nonsense"], "Use --help"),
        (["--hmp-bf16=file"], "run.precision=bfloat16"),
    ],
)
def test_wrong_flags_are_refused_with_advice(words, message):
    with pytest.raises(ConfigurationError, match=message):
        parse(words)

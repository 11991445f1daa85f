"""The options of a program, from plain numbers and words."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.door.settings import execution
from pilotage.errors import OptionError
from pilotage.options.choices import NonFiniteLoss, OutputMode, Reduction, Tier
from pilotage.options.execution import Execution
from pilotage.options.locations import Locations


def test_nothing_given_is_the_default_of_the_options():
    assert execution() == Execution()


def test_strings_and_enums_are_equivalent():
    assert execution(outputs="sum", reduction="sum", tier="eager", nonfinite_loss="raise") == execution(
        outputs=OutputMode.SUM, reduction=Reduction.SUM, tier=Tier.EAGER, nonfinite_loss=NonFiniteLoss.RAISE
    )


@pytest.mark.parametrize(
    ("option", "choices"),
    [
        ("outputs", "'all', 'every_n', 'final', 'sum'"),
        ("reduction", "'mean', 'sum'"),
        ("tier", "'eager', 'graph'"),
        ("nonfinite_loss", "'warn', 'raise', 'ignore'"),
    ],
)
def test_an_invalid_string_is_refused_with_the_valid_ones(option, choices):
    with pytest.raises(OptionError, match=f"{option} is 'nonsense'. Choose one of: {choices}"):
        execution(**{option: "nonsense"})


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({"outputs": "fianl"}, "final"),
        ({"tier": "compile"}, "compiled"),
        ({"recomputation": "mark"}, "marked"),
        ({"check": "frist"}, "first"),
        ({"on_mismatch": "raises"}, "raise"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_one_that_was_meant(options, meant):
    with pytest.raises(OptionError, match=rf"Did you mean {meant}\? Choose"):
        execution(**options)


def test_batching_and_files_are_converted():
    options = execution(device_iterations=3, replicas=2, cache_directory="code", cards=["cpu"], anchors=["loss"])
    assert (options.batching.device_iterations, options.batching.replicas) == (3, 2)
    assert (options.cache_directory, options.cards, options.anchors) == (Path("code"), ("cpu",), ("loss",))


@pytest.mark.parametrize("option", ["cards", "anchors"])
def test_a_single_name_instead_of_a_list_is_refused(option):
    with pytest.raises(OptionError, match=rf"{option} is 'loss'. It takes a list of names: {option}=\['loss'\]"):
        execution(**{option: "loss"})


def test_locations_are_a_value_or_a_dictionary():
    given = Locations(activations=5, optimizer=0)
    assert execution(locations=given).locations == given
    assert execution(locations={"activations": 5, "optimizer": 0}).locations == given
    with pytest.raises(OptionError, match=r"locations has no 'activation'\. Did you mean activations\?"):
        execution(locations={"activation": 5})

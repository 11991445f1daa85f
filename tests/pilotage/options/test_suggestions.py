import pytest

from pilotage.options.suggestions import did_you_mean

KNOWN = ("deviceIterations", "device_iterations", "replicationFactor", "Training")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("deviceIteration", "deviceIterations"),
        ("replication_factor", "replicationFactor"),
        ("training", "Training"),
        ("REPLICATIONFACTOR", "replicationFactor"),
    ],
)
def test_the_closest_name_is_suggested_whatever_its_case(given, meant):
    assert did_you_mean(given, KNOWN) == f" Did you mean {meant}?"


def test_nothing_is_suggested_for_a_name_that_resembles_none():
    assert did_you_mean("banana", KNOWN) == ""
    assert did_you_mean("banana", ()) == ""

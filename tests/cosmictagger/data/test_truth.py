import pytest

from cosmictagger.data.truth import COSMIC_ONLY, NC, NU_E_CC, NU_MU_CC, NeutrinoTruth, event_class


def neutrino(pdg, current_type):
    return NeutrinoTruth(
        pdg=pdg, current_type=current_type, interaction_type=1001, energy=1.0, vertex=(0, 0, 0), time=0
    )


@pytest.mark.parametrize(
    ("pdg", "current_type", "expected"),
    [(12, 0, NU_E_CC), (-12, 0, NU_E_CC), (14, 0, NU_MU_CC), (-14, 0, NU_MU_CC), (14, 1, NC), (12, 1, NC)],
)
def test_the_class_follows_flavour_and_current(pdg, current_type, expected):
    assert event_class(neutrino(pdg, current_type), 10) == expected


def test_an_invisible_neutrino_makes_an_event_cosmic_only():
    assert event_class(neutrino(14, 0), 9) == COSMIC_ONLY
    assert event_class(None, 1000) == COSMIC_ONLY


@pytest.mark.parametrize(
    ("pdg", "current_type", "expected"), [(12, 0, "ν_e CC"), (14, 1, "ν_μ NC"), (-14, 0, "anti-ν_μ CC")]
)
def test_the_flavour_is_in_physics_notation(pdg, current_type, expected):
    assert neutrino(pdg, current_type).flavour == expected

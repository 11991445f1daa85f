"""The limits on gradients."""

import pytest

from pilotage.errors import OptionError
from pilotage.options.clipping import NO_LIMIT, clipping


def test_the_default_is_no_limit():
    assert clipping(None, None) == (NO_LIMIT, NO_LIMIT)
    assert clipping(2, None) == (2.0, NO_LIMIT)
    assert clipping(None, 0.5) == (NO_LIMIT, 0.5)


@pytest.mark.parametrize("given", [0, -1.0, float("nan"), "1", True])
def test_only_positive_numbers_are_accepted(given):
    with pytest.raises(OptionError, match=r"clip_grad_norm is .* a number above 0"):
        clipping(given, None)
    with pytest.raises(OptionError, match=r"clip_grad_value is .* a number above 0"):
        clipping(None, given)


def test_both_limits_together_are_refused():
    with pytest.raises(OptionError, match="Choose one of them"):
        clipping(1.0, 1.0)

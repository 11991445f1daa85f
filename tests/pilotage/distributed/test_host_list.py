from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.host_list import expand_hosts
from pilotage.errors import OptionError

NAMES = st.from_regex(r"[a-z][a-z0-9.\-]{0,8}", fullmatch=True)


@given(st.lists(NAMES, min_size=1, unique=True))
def test_plain_names_come_back_as_they_are(names):
    assert expand_hosts(",".join(names)) == names


@given(NAMES, st.lists(st.integers(0, 200), min_size=1, unique=True))
def test_numbers_in_brackets_are_put_into_the_name(name, numbers):
    assert expand_hosts(f"{name}[{','.join(map(str, numbers))}]") == [f"{name}{number}" for number in numbers]


@given(NAMES, st.integers(0, 50), st.integers(0, 20))
def test_a_range_holds_both_its_ends(name, first, more):
    assert expand_hosts(f"{name}[{first}-{first + more}].site") == [
        f"{name}{number}.site" for number in range(first, first + more + 1)
    ]


def test_lists_mix_names_and_ranges_and_keep_leading_zeros():
    assert expand_hosts("gc[08-10,12],login, 10.0.0.1") == ["gc08", "gc09", "gc10", "gc12", "login", "10.0.0.1"]


@pytest.mark.parametrize(
    "text", ["", "a,,b", "a[", "a]", "a[1-]", "a[3-1]", "a[x]", "a b", "-oProxyCommand=x", "a[1][2]"]
)
def test_what_cannot_be_read_is_shown_with_the_form_that_can(text):
    with pytest.raises(OptionError, match="host list"):
        expand_hosts(text)


def test_a_host_stands_once():
    with pytest.raises(OptionError, match="names a1 more than once"):
        expand_hosts("a[0-2],a1")

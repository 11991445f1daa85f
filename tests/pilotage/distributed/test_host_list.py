from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.host_list import expand_hosts
from pilotage.errors import OptionError

NAMES = st.from_regex(r"[a-z][a-z0-9.\-]{0,8}", fullmatch=True)


@given(st.lists(NAMES, min_size=1, unique=True))
def test_plain_names_are_returned_unchanged(names):
    assert expand_hosts(",".join(names)) == names


@given(NAMES, st.lists(st.integers(0, 200), min_size=1, unique=True))
def test_numbers_in_brackets_are_put_into_the_name(name, numbers):
    assert expand_hosts(f"{name}[{','.join(map(str, numbers))}]") == [f"{name}{number}" for number in numbers]


@given(NAMES, st.integers(0, 50), st.integers(0, 20))
def test_a_range_includes_both_ends(name, first, more):
    assert expand_hosts(f"{name}[{first}-{first + more}].site") == [
        f"{name}{number}.site" for number in range(first, first + more + 1)
    ]


def test_lists_mix_names_and_ranges_and_keep_leading_zeros():
    assert expand_hosts("gc[08-10,12],login, 10.0.0.1") == ["gc08", "gc09", "gc10", "gc12", "login", "10.0.0.1"]


@pytest.mark.parametrize(
    "text", ["", "a,,b", "a[", "a]", "a[1-]", "a[3-1]", "a[x]", "a b", "-oProxyCommand=x", "a[1][2]"]
)
def test_an_unreadable_host_list_is_shown_with_the_right_form(text):
    with pytest.raises(OptionError, match="host list"):
        expand_hosts(text)


def test_a_host_may_be_listed_only_once():
    with pytest.raises(OptionError, match="names a1 more than once"):
        expand_hosts("a[0-2],a1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("h[0-99999999999]", "names more than 65536 hosts"),
        ("h[0-65535],one", "names more than 65536 hosts"),
        ("h[0-40000],g[0-40000]", "names more than 65536 hosts"),
        ("h[0-40000,50000-99999]", "names more than 65536 hosts"),
        ("h[0-" + "9" * 5000 + "]", "at most 18 digits"),
        ("h[" + "0" * 100_000 + "-1]", "at most 18 digits"),
        ("a," * 70_000 + "a", "names more than 65536 hosts"),
    ],
    ids=lambda text: text[:30],
)
def test_invalid_ranges_are_refused_at_once(text, message):
    with pytest.raises(OptionError, match=message) as refused:
        expand_hosts(text)
    assert len(str(refused.value)) < 1000


def test_the_largest_list_is_read_quickly():
    assert len(expand_hosts("node[00000-65535]")) == 65_536
    assert len(expand_hosts(",".join(f"n{number}" for number in range(65_536)))) == 65_536

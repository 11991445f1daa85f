import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.monitoring.announcement import Activity, Announcement

times = st.floats(0, 1e12)
counts = st.integers(0, (1 << 63) - 1)
announcements = st.builds(
    Announcement,
    program=st.none() | st.text(),
    trains=st.booleans(),
    devices=st.lists(st.text()).map(tuple),
    hardware=st.lists(st.text()).map(tuple),
    tier=st.text(),
    activity=st.sampled_from(Activity),
    since=times,
    moment=times,
    calls=counts,
    steps=counts,
    updates=counts,
    rate=st.none() | times,
    period=times,
    replicas=counts,
    instance=counts,
    instances=counts,
    stage=st.none() | counts,
    job=st.none() | st.text(),
)
rubbish = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(announcements)
def test_a_written_announcement_is_read_back(said):
    assert Announcement.from_text(said.as_text()) == said


@given(st.binary() | st.text())
def test_invalid_texts_are_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - any of its kinds will do
        Announcement.from_text(text)


@given(announcements, st.data())
def test_a_truncated_text_is_refused(said, data):
    text = said.as_text()
    with pytest.raises(ValueError):  # noqa: PT011
        Announcement.from_text(text[: data.draw(st.integers(0, len(text) - 1))])


@given(announcements, st.sampled_from([field.name for field in fields(Announcement)]), rubbish)
def test_an_invalid_field_is_refused_or_has_the_right_type(said, name, value):
    text = json.dumps({**json.loads(said.as_text()), name: value})
    try:
        read = Announcement.from_text(text)
    except ValueError:
        return
    assert Announcement.from_text(read.as_text()) == read


@pytest.mark.parametrize("text", ["[" * 100_000, "NaN", "{}", "null", "9" * 10_000])
def test_texts_that_break_json_readers_are_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011
        Announcement.from_text(text)


def test_a_program_without_recent_calls_is_idle(announcement):
    said = announcement(moment=100.0, period=0.1)
    assert said.activity_at(102.9) is Activity.RUNNING
    assert said.activity_at(103.1) is Activity.IDLE


def test_a_program_with_long_calls_is_not_idle(announcement):
    said = announcement(moment=100.0, period=20.0)
    assert said.activity_at(159.0) is Activity.RUNNING
    assert said.activity_at(161.0) is Activity.IDLE


@pytest.mark.parametrize("activity", [Activity.COMPILING, Activity.STARTING])
def test_compilations_and_first_calls_may_take_any_time(announcement, activity):
    assert announcement(activity=activity).activity_at(1e6) is activity

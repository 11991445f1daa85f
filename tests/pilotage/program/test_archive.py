"""A file is what was written, or it is refused."""

from __future__ import annotations

import contextlib

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pilotage.errors import ProgramFileError
from pilotage.program.archive import read_archive, write_archive

CONTENT = {"name": "net", "numbers": [1, 2.5, None, True], "nested": {"a": []}}
TENSORS = {
    "weight": torch.arange(6.0).reshape(2, 3),
    "turned": torch.arange(6).reshape(2, 3).t(),
    "half": torch.ones(3, dtype=torch.float16),
    "short": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "flag": torch.tensor(True),
    "empty": torch.zeros(0, 3),
    "complex": torch.tensor([1 + 2j]),
    "scalar": torch.tensor(3.0, dtype=torch.float64),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("archive") / "deep" / "program"
    write_archive(path, CONTENT, TENSORS)
    return path


def assert_as_written(path):
    content, tensors = read_archive(path)
    assert content == CONTENT
    assert list(tensors) == list(TENSORS)
    for name, tensor in TENSORS.items():
        assert (tensors[name].dtype, tensors[name].shape) == (tensor.dtype, tensor.shape)
        assert torch.equal(tensors[name], tensor)


def test_what_is_written_can_be_read(whole):
    assert_as_written(whole)
    assert [entry.name for entry in whole.parent.iterdir()] == ["program"]


def test_a_written_file_replaces_the_one_before(tmp_path):
    write_archive(tmp_path / "p", {"first": 1}, {})
    write_archive(tmp_path / "p", CONTENT, TENSORS)
    assert_as_written(tmp_path / "p")


def test_a_failed_writing_leaves_the_file_before_and_nothing_else(tmp_path):
    write_archive(tmp_path / "p", CONTENT, TENSORS)
    with pytest.raises(TypeError):
        write_archive(tmp_path / "p", {"unwritable": object()}, {})
    assert_as_written(tmp_path / "p")
    assert [entry.name for entry in tmp_path.iterdir()] == ["p"]


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_with_a_changed_byte_is_refused_unless_it_makes_no_difference(whole, tmp_path, data):
    content = bytearray(whole.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    changed = tmp_path / "changed"
    changed.write_bytes(content)
    with contextlib.suppress(ProgramFileError):
        assert_as_written(changed)


@given(st.floats(0, 1, exclude_max=True))
@example(0.0)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_that_is_cut_short_is_refused(whole, tmp_path, share):
    content = whole.read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ProgramFileError, match="cut short"):
        read_archive(cut)


def test_a_missing_file_is_called_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "nothing")


def test_another_format_is_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr("pilotage.program.archive.FORMAT", 99)
    write_archive(tmp_path / "p", CONTENT, TENSORS)
    monkeypatch.undo()
    with pytest.raises(ProgramFileError, match=r"format 99; this version reads 1 and 2\. Compile it again"):
        read_archive(tmp_path / "p")

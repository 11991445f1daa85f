"""A file is read exactly as written, or refused."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pilotage.errors import ProgramFileError
from pilotage.storage.archive import read_archive, read_content, write_archive
from pilotage.storage.dtypes import BY_NAME

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
WITH_FIXTURES = [HealthCheck.function_scoped_fixture]

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def any_tensor(draw):
    """A tensor of any type and shape, dense, strided, overlapping or conjugated, with any bits."""
    dtype = BY_NAME[draw(st.sampled_from(sorted(BY_NAME)))]
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    count = torch.Size(shape).numel()
    data = draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    if dtype is torch.bool:
        data = bytes(byte & 1 for byte in data)
    raw = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
    tensor = raw.view(dtype).reshape(shape)
    form = draw(st.sampled_from(["dense", "turned", "expanded", "conjugated"]))
    if form == "turned":
        return tensor.permute([*reversed(range(tensor.dim()))])
    if form == "expanded":
        return tensor.unsqueeze(0).expand(3, *tensor.shape)
    return tensor.conj() if form == "conjugated" and dtype in (torch.complex64, torch.complex128) else tensor


def bits(tensor):
    plain = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    dense = torch.empty(plain.shape, dtype=plain.dtype).copy_(plain)
    return (tensor.dtype, tuple(tensor.shape), dense.reshape(-1).view(torch.uint8).tolist() if dense.numel() else [])


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


def test_a_written_file_can_be_read(whole):
    assert_as_written(whole)
    assert read_content(whole) == CONTENT
    assert [entry.name for entry in whole.parent.iterdir()] == ["program"]


@given(
    content=st.dictionaries(st.text(), PLAIN, max_size=4),
    tensors=st.dictionaries(st.text(st.characters(codec="utf-8")), any_tensor(), max_size=5),
)
@settings(max_examples=100, deadline=None, suppress_health_check=WITH_FIXTURES)
def test_plain_data_and_tensors_are_read_back_bitwise(tmp_path, content, tensors):
    write_archive(tmp_path / "p", content, tensors)
    read, back = read_archive(tmp_path / "p")
    assert read == content
    assert list(back) == list(tensors)
    assert {name: bits(tensor) for name, tensor in back.items()} == {name: bits(each) for name, each in tensors.items()}


def test_the_library_safetensors_reads_a_file_and_its_metadata(whole):
    from safetensors import safe_open

    with safe_open(whole, "pt") as file:
        assert set(file.keys()) == set(TENSORS)
        for name, tensor in TENSORS.items():
            expected = torch.view_as_real(tensor) if tensor.is_complex() else tensor
            assert torch.equal(file.get_tensor(name), expected)
            assert file.get_tensor(name).dtype is expected.dtype
        assert json.loads(file.metadata()["pilotage"])["content"] == CONTENT


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_the_library_safetensors_reads_every_type(tmp_path, name):
    from safetensors.torch import load_file

    tensor = (
        torch.zeros(2, 3, dtype=torch.uint8).view(torch.bool) if name == "bool" else torch.arange(48).to(torch.uint8)
    )
    write_archive(tmp_path / "p", {}, {"t": tensor.view(BY_NAME[name])})
    read = load_file(tmp_path / "p")["t"]
    assert torch.equal(read.reshape(-1).view(torch.uint8), tensor.reshape(-1).view(torch.uint8))


def test_tied_tensors_come_back_under_both_names(tmp_path):
    tensor = torch.randn(3)
    write_archive(tmp_path / "p", {}, {"a": tensor, "b": tensor, "part": tensor[1:]})
    back = read_archive(tmp_path / "p")[1]
    assert torch.equal(back["a"], tensor)
    assert torch.equal(back["b"], tensor)
    assert torch.equal(back["part"], tensor[1:])


def test_a_file_of_format_1_still_loads():
    assert_as_written(Path(__file__).with_name("format_1.pilotage"))
    assert read_content(Path(__file__).with_name("format_1.pilotage")) == CONTENT


def test_writing_replaces_a_file_and_keeps_tensors_read_from_the_old_one(tmp_path):
    write_archive(tmp_path / "p", {"first": 1}, {"t": torch.arange(5)})
    before = read_archive(tmp_path / "p")[1]
    write_archive(tmp_path / "p", CONTENT, TENSORS)
    assert_as_written(tmp_path / "p")
    assert torch.equal(before["t"], torch.arange(5))


def test_writing_to_tensors_from_a_file_does_not_change_it(tmp_path):
    write_archive(tmp_path / "p", {}, {"t": torch.arange(5)})
    read_archive(tmp_path / "p")[1]["t"].zero_()
    assert torch.equal(read_archive(tmp_path / "p")[1]["t"], torch.arange(5))


def test_a_failed_write_keeps_the_old_file_and_nothing_else(tmp_path):
    write_archive(tmp_path / "p", CONTENT, TENSORS)
    with pytest.raises(TypeError):
        write_archive(tmp_path / "p", {"unwritable": object()}, {})
    assert_as_written(tmp_path / "p")
    assert [entry.name for entry in tmp_path.iterdir()] == ["p"]


@pytest.mark.parametrize(
    "tensor",
    [torch.zeros(2, device="meta"), torch.eye(2).to_sparse(), torch.zeros(2, dtype=torch.uint8).view(torch.bits8)],
    ids=["without values", "sparse", "bits"],
)
def test_a_tensor_that_could_not_be_read_again_is_not_written(tmp_path, tensor):
    with pytest.raises(ProgramFileError, match="The tensor odd cannot be stored"):
        write_archive(tmp_path / "p", {}, {"odd": tensor})
    assert not list(tmp_path.iterdir())


def nested(depth):
    return [] if depth == 0 else [nested(depth - 1)]


def test_too_deeply_nested_data_is_neither_written_nor_read(tmp_path, monkeypatch):
    write_archive(tmp_path / "p", {"deep": nested(90)}, {})
    with pytest.raises(ProgramFileError, match=r"p cannot be written: its data is nested more than 100 deep"):
        write_archive(tmp_path / "p", {"deep": nested(100)}, {})
    assert read_content(tmp_path / "p") == {"deep": nested(90)}
    monkeypatch.setattr("pilotage.storage.json_text.MAXIMUM_DEPTH", 50)
    with pytest.raises(ProgramFileError, match=r"p is not a program of Pilotage.*nested more than 50 deep"):
        read_archive(tmp_path / "p")


@given(st.floats(0, 1, exclude_max=True))
@example(0.0)
@settings(max_examples=40, deadline=None, suppress_health_check=WITH_FIXTURES)
def test_a_truncated_file_is_refused(whole, tmp_path, share):
    content = whole.read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ProgramFileError, match=re.escape(str(cut))):
        read_archive(cut)


def test_a_file_of_other_tools_is_refused(tmp_path):
    from safetensors.torch import save_file

    save_file({"t": torch.ones(2)}, tmp_path / "theirs")
    torch.save({"t": torch.ones(2)}, tmp_path / "torch")
    for name in ("theirs", "torch"):
        with pytest.raises(ProgramFileError, match=f"{name} is not a program of Pilotage"):
            read_archive(tmp_path / name)


def test_a_missing_file_raises_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "nothing")


def test_another_format_is_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr("pilotage.storage.archive.FORMAT", 99)
    write_archive(tmp_path / "p", CONTENT, TENSORS)
    monkeypatch.undo()
    with pytest.raises(ProgramFileError, match=r"format 99; this version reads 1 and 2\. Compile it again"):
        read_archive(tmp_path / "p")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["directory", "fifo", "device", "socket", "to a fifo"])
def test_anything_but_a_regular_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "odd"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        place = socket.socket(socket.AF_UNIX)
        place.bind(str(path))
        place.close()
    else:
        os.mkfifo(tmp_path / "fifo")
        path.symlink_to("fifo")
    with pytest.raises(ProgramFileError, match="odd is not a program of Pilotage"):
        read_archive(path)


def test_a_link_to_a_file_is_followed(whole, tmp_path):
    (tmp_path / "link").symlink_to(whole)
    assert_as_written(tmp_path / "link")


def test_writing_and_reading_need_neither_the_library_nor_twice_the_memory(tmp_path):
    program = textwrap.dedent(
        """
        import resource, sys
        sys.modules["safetensors"] = None
        import torch
        from pathlib import Path
        from pilotage.storage.archive import read_archive, write_archive

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

        tensors = {str(number): torch.full((2_500_000,), float(number)) for number in range(20)}
        before = peak()
        write_archive(Path(sys.argv[1]), {}, tensors)
        print(peak() - before)
        back = read_archive(Path(sys.argv[1]))[1]
        print(peak() - before)
        assert all(torch.equal(back[name], tensor) for name, tensor in tensors.items())
        """
    )
    ran = subprocess.run([sys.executable, "-c", program, tmp_path / "p"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    writing, reading = map(float, ran.stdout.split())
    # The file has 191 MB, one of its tensors 10 MB.
    assert writing < 40
    assert reading < 40

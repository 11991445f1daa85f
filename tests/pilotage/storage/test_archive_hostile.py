"""Hostile files: nothing runs or hangs, and memory stays within the size of the file plus 1 GB."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import subprocess
import sys
import textwrap
import tracemalloc
import zipfile
from pathlib import Path

import pytest
import torch

from pilotage.errors import ProgramFileError
from pilotage.storage.archive import read_archive, read_content

OLD = Path(__file__).with_name("format_1.pilotage")


def sealed(header, data, content=None, table=None):
    """A file with correct digests, whatever it contains."""
    if table is None:
        table = {
            name: ["float32", entry["shape"], hashlib.sha256(data[slice(*entry["data_offsets"])]).hexdigest()]
            for name, entry in header.items()
        }
    text = json.dumps({"format": 2, "torch": "2", "content": {} if content is None else content, "tensors": table})
    metadata = {"pilotage": text, "pilotage_sha256": hashlib.sha256(text.encode()).hexdigest()}
    whole = json.dumps({"__metadata__": metadata, **header}).encode()
    return struct.pack("<Q", len(whole)) + whole + data


def entry(shape, start=0, end=16, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def refusal(path, data):
    path.write_bytes(data)
    for read in (read_archive, read_content):
        with pytest.raises(ProgramFileError, match=re.escape(str(path))) as refused:
            read(path)
    return str(refused.value)


def test_a_sealed_file_is_read(tmp_path):
    (tmp_path / "p").write_bytes(sealed({"t": entry([4])}, bytes(16)))
    assert torch.equal(read_archive(tmp_path / "p")[1]["t"], torch.zeros(4))


@pytest.mark.parametrize(
    "header",
    [
        {"t": entry([5])},
        {"t": entry([-4])},
        {"t": entry([-2, -2])},
        {"t": entry([2**62], 0, 0)},
        {"t": entry([2**62, 0], 0, 0)},
        {"t": entry([0, 2**40, 2**40], 0, 0)},
        {"t": entry([2**63, 2])},
        {"t": entry([4.0])},
        {"t": entry([True, 4])},
        {"t": entry(["4"])},
        {"t": entry([1] * 1000 + [4])},
        {"t": entry([4], 0, 17)},
        {"t": entry([4], 16, 0)},
        {"t": entry([4], -16, 0)},
        {"t": entry([4], 2**60, 2**60 + 16)},
        {"t": entry([4]), "u": entry([4])},
        {"t": entry([2], 0, 8), "u": entry([1], 12, 16)},
        {"t": entry([4], dtype="F33")},
        {"t": entry([4], dtype="__class__")},
        {"t": entry([4], dtype=["F32"])},
        {"t": {"shape": [4], "data_offsets": [0, 16]}},
        {"t": entry([4]) | {"more": 1}},
        {"t": [1, 2, 3]},
        {},
    ],
    ids=lambda header: json.dumps(header)[:60],
)
def test_invalid_shapes_types_and_offsets_are_refused(tmp_path, header):
    assert "its tensors are not those that were written" not in refusal(
        tmp_path / "p", sealed(header, bytes(16), table={})
    )


@pytest.mark.parametrize("kind", ["float64", "complex64", "Tensor", "load", "uint1", "qint8", 7, None])
def test_our_data_must_name_the_type_of_the_header(tmp_path, kind):
    digest = hashlib.sha256(bytes(16)).hexdigest()
    (tmp_path / "p").write_bytes(sealed({"t": entry([4])}, bytes(16), table={"t": [kind, [4], digest]}))
    with pytest.raises(ProgramFileError, match=re.escape(str(tmp_path / "p"))):
        read_archive(tmp_path / "p")


def test_a_boolean_of_7_is_refused(tmp_path):
    table = {"t": ["bool", [2], hashlib.sha256(b"\x07\x00").hexdigest()]}
    (tmp_path / "p").write_bytes(sealed({"t": entry([2], 0, 2, "BOOL")}, b"\x07\x00", table=table))
    with pytest.raises(ProgramFileError, match="neither 0 nor 1"):
        read_archive(tmp_path / "p")


def test_a_duplicate_name_is_refused(tmp_path):
    text = sealed({"t": entry([4]), "u": entry([0], 16, 16)}, bytes(16))
    assert "it contains a name twice" in refusal(tmp_path / "p", text.replace(b'"u": {', b'"t": {'))


@pytest.mark.parametrize("length", [0, 1, 2**20, 2**26 + 1, 2**63, 2**64 - 1])
def test_a_header_of_another_length_is_refused_before_it_is_read(tmp_path, length):
    data = struct.pack("<Q", length) + sealed({"t": entry([4])}, bytes(16))[8:]
    tracemalloc.start()
    refusal(tmp_path / "p", data)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_endlessly_nested_content_is_refused(tmp_path):
    text = b"[" * 200_000
    assert "deep" in refusal(tmp_path / "p", struct.pack("<Q", len(text) + 6) + b'{"a": ' + text)
    (tmp_path / "q").write_bytes(sealed({}, b"", content={"a": json.loads("[" * 150 + "]" * 150)}))
    with pytest.raises(ProgramFileError, match="nested more than 100 deep"):
        read_content(tmp_path / "q")


def old_archive(path, parts, kind):
    """An archive of format 1 with correct digests."""
    table = {name: [name, [len(data)], "uint8"] for name, data in parts.items()}
    content = json.dumps({"format": 1, "torch": "2", "content": {}, "tensors": table})
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()}
    digests["content.json"] = hashlib.sha256(content.encode()).hexdigest()
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
        archive.writestr("content.json", content)
        archive.writestr("digest.json", json.dumps(digests))


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_bomb_is_refused_before_it_is_expanded(tmp_path, kind):
    path = tmp_path / "bomb"
    old_archive(path, {"tensors/0": bytes(60_000_000)}, kind)
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    assert "it is compressed" in refusal(path, path.read_bytes())
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_an_old_archive_whose_parts_overlap_is_refused(tmp_path):
    path = tmp_path / "bomb"
    old_archive(path, {f"tensors/{number}": bytes(1000) for number in range(10)}, zipfile.ZIP_STORED)
    data = path.read_bytes()
    for match in re.finditer(rb"PK\x01\x02", data):
        place = match.start() + 20
        data = data[:place] + struct.pack("<LL", 12_000, 12_000) + data[place + 8 :]
    assert "bytes in total" in refusal(path, data)


def test_an_old_archive_with_an_endless_list_of_parts_is_refused(tmp_path):
    path = tmp_path / "bomb"
    old_archive(path, {f"tensors/{number:060000d}": b"" for number in range(300)}, zipfile.ZIP_STORED)
    tracemalloc.start()
    assert "list of parts" in refusal(path, path.read_bytes())
    # Reading the test's own file is included.
    assert tracemalloc.get_traced_memory()[1] < 1_000_000 + path.stat().st_size
    tracemalloc.stop()


@pytest.mark.slow
def test_reading_needs_at_most_the_size_of_the_file_and_a_gigabyte(tmp_path):
    """The largest allowed header, in the forms that take the most memory."""
    for number, unit in enumerate(('{"a":1},', "[],", "1.5,", "[[1]],")):
        text = "[" + unit * (3_990_000 // sum(unit.count(mark) for mark in ",[{:")) + "0]"
        (tmp_path / str(number)).write_bytes(
            struct.pack("<Q", len(text) + 20) + b'{"__metadata__": ' + text.encode() + b"  }"
        )
    program = textwrap.dedent(
        """
        import resource, sys
        from pathlib import Path
        from pilotage.errors import ProgramFileError
        from pilotage.storage.archive import read_archive

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for name in sys.argv[1:]:
            try:
                read_archive(Path(name))
            except ProgramFileError as error:
                assert "its metadata are not strings" in str(error), error
            else:
                raise AssertionError
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
        """
    )
    names = [str(path) for path in tmp_path.iterdir()]
    ran = subprocess.run([sys.executable, "-c", program, *names], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) < 1024

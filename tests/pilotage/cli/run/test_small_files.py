from __future__ import annotations

import os
import socket
import threading

import pytest

from pilotage.cli.run import small_files
from pilotage.cli.run.small_files import read_small_file
from pilotage.errors import OptionError


def test_a_text_is_read_completely(tmp_path):
    file = tmp_path / "file"
    file.write_text("häuser\n" * 1000)
    assert read_small_file(str(file), "file") == file.read_text()
    file.write_text("")
    assert read_small_file(str(file), "file") == ""
    file.write_text("x" * small_files.MAX_BYTES)
    assert len(read_small_file(str(file), "file")) == small_files.MAX_BYTES


def test_a_finite_pipe_is_read_completely(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=pipe.write_text, args=("num-instances = 2\n" * 10_000,))
    writing.start()
    assert read_small_file(str(pipe), "file") == "num-instances = 2\n" * 10_000
    writing.join()


def test_endless_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(small_files, "TIMEOUT", 0.2)
    pipe, large, name = tmp_path / "pipe", tmp_path / "large", tmp_path / "socket"
    os.mkfifo(pipe)
    with pytest.raises(OptionError, match="has not ended after"):
        read_small_file(str(pipe), "file")
    with large.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OptionError, match="larger than 1048576 bytes"):
        read_small_file(str(large), "file")
    for device in ("/dev/zero", "/dev/urandom"):
        with pytest.raises(OptionError, match=f"The host file '{device}' is a device or a socket"):
            read_small_file(device, "host file")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(name))
        with pytest.raises(OptionError, match="cannot be read"):
            read_small_file(str(name), "file")


def test_an_unreadable_file_is_named(tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    for path, message in [
        (binary, "not UTF-8 text"),
        (tmp_path, "Is a directory"),
        (tmp_path / "no", "No such file"),
    ]:
        with pytest.raises(OptionError, match=message):
            read_small_file(str(path), "file")

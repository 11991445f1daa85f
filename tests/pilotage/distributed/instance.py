"""One instance of a test's world: loads the test's file, calls a function in it, and writes the result to a file.

Run by `runpy` in a fork of a process that has loaded torch, which is much faster than a new Python.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import torch


def main(given: dict[str, Any]) -> None:
    os.environ.update(given["environment"])
    # The output at the end of an instance is part of the result.
    log = Path(given["answer"]).with_suffix(".log").open("w")
    sys.stdout = sys.stderr = log
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    torch.set_num_threads(1)
    try:
        spec = importlib.util.spec_from_file_location("test_of_instances", given["file"])
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        answer = getattr(module, given["function"])(**given["arguments"])
        torch.save(answer, given["answer"])
    except BaseException:
        traceback.print_exc()
        log.flush()
        raise
    finally:
        log.flush()


if __name__ == "__instance__":
    main(globals()["given"])

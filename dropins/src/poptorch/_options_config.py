"""Where PopTorch keeps the reader of option files."""

from __future__ import annotations

from poptorch.options.calls import ConfigFileError, OptionCall, calls_of_file, calls_of_json

__all__ = ["ConfigFileError", "OptionCall", "calls_of_file", "calls_of_json"]

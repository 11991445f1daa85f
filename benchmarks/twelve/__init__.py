"""Twelve models of many kinds, each with its batch and optimizer, in full size and tiny."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.twelve.language import LANGUAGE
from benchmarks.twelve.others import OTHERS
from benchmarks.twelve.pictures import PICTURES
from benchmarks.twelve.subject import Subject

SUBJECTS: Mapping[str, Subject] = {**LANGUAGE, **PICTURES, **OTHERS}
"""The models by name."""

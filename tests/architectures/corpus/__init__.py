"""Sixty small architectures, one or two blocks each, written in the styles of the libraries that people use."""

from __future__ import annotations

from collections.abc import Mapping

from corpus.attention import ATTENTION
from corpus.case import Case
from corpus.convolutional import CONVOLUTIONAL
from corpus.efficient import EFFICIENT
from corpus.generative import GENERATIVE
from corpus.language import LANGUAGE
from corpus.physics import PHYSICS
from corpus.recurrent import RECURRENT
from corpus.tables import TABLES

CASES: Mapping[str, Case] = {
    **CONVOLUTIONAL,
    **EFFICIENT,
    **ATTENTION,
    **LANGUAGE,
    **RECURRENT,
    **GENERATIVE,
    **PHYSICS,
    **TABLES,
}
"""All architectures by name."""

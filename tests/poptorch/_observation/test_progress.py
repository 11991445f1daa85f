"""The progress bar of a compilation."""

from __future__ import annotations

import builtins
import re

import pytest
import torch
from torch import nn

import poptorch
from pilotage.events import CompilationProgress, Warned
from poptorch._observation.progress import ProgressBar

X = torch.ones(1, 2)
WHOLE = r"Graph compilation: 100%\|█+\| 100/100 \[00:\d\d<00:00\]"


def test_compiling_draws_a_complete_bar_on_standard_error(capsys):
    model = poptorch.inferenceModel(nn.Linear(2, 2))
    model.compile(X)
    out, error = capsys.readouterr()
    assert out == ""
    assert re.search(WHOLE, error)
    assert error.endswith("\n")


def test_the_bar_is_drawn_only_for_compilations(capsys):
    model = poptorch.inferenceModel(nn.Linear(2, 2))
    model(X)
    capsys.readouterr()
    model(X)
    assert "Graph compilation" not in capsys.readouterr().err
    model.destroy()
    model(X)
    assert len(re.findall(WHOLE, capsys.readouterr().err)) == 1


def test_the_bar_can_be_switched_off(capsys):
    options = poptorch.Options().showCompilationProgressBar(False)
    poptorch.inferenceModel(nn.Linear(2, 2), options).compile(X)
    assert "Graph compilation" not in capsys.readouterr().err


def test_a_compilation_that_fails_leaves_its_bar_unfinished_and_closed(capsys):
    def forward(x):
        raise KeyError("of the user")

    with pytest.raises(KeyError):
        poptorch.inferenceModel(forward)(X)
    error = capsys.readouterr().err
    assert "Graph compilation" in error
    assert "100%" not in error


def test_the_bar_follows_the_fractions_and_nothing_else(capsys):
    bar = ProgressBar()
    bar(Warned(message="not of its business"))
    assert capsys.readouterr().err == ""
    for fraction in (0.0, 0.25, 1.0):
        bar(CompilationProgress(fraction=fraction, doing="something"))
    assert re.search(WHOLE, capsys.readouterr().err)


def test_without_tqdm_there_is_no_bar_and_no_error(capsys, monkeypatch):
    ordinary = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("tqdm"):
            raise ImportError(name)
        return ordinary(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    poptorch.inferenceModel(nn.Linear(2, 2)).compile(X)
    assert "Graph compilation" not in capsys.readouterr().err

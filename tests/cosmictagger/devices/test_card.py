"""Preparing a card in the background."""

from __future__ import annotations

import threading

import pytest
import torch

from cosmictagger.devices import card


@pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no CUDA device.")
def test_libraries_are_loaded_in_a_thread_and_few_algorithms_are_tried():
    card.prepare_card()
    for thread in threading.enumerate():
        if thread.name == "loading of cuDNN":
            thread.join()
    assert torch.backends.cudnn.benchmark
    assert torch.backends.cudnn.benchmark_limit == card.PROPOSALS


def test_a_loading_error_is_left_to_the_first_step(monkeypatch):
    tried = []

    def broken(*_, **__):
        tried.append("a library")
        raise RuntimeError("no card")

    monkeypatch.setattr(torch, "empty", broken)
    card._use_libraries()
    assert tried

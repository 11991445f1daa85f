"""The metrics of a trained network."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch


def test_accuracy_and_confusion_agree_with_counting(tutorial_module) -> None:
    metrics = tutorial_module("metrics")
    torch.manual_seed(0)
    labels, scores = torch.randint(10, (500,)), torch.randn(500, 10)
    result = metrics.evaluation(labels, scores)
    predicted = scores.argmax(1)
    assert result.images == 500
    assert result.accuracy == pytest.approx((predicted == labels).double().mean().item())
    for true in range(10):
        for said in range(10):
            assert result.confusion[true, said] == ((labels == true) & (predicted == said)).sum()
    for index, (_, share) in enumerate(result.per_class):
        assert share == pytest.approx((predicted == labels)[labels == index].double().mean().item())


def test_a_class_without_images_has_no_accuracy(tutorial_module) -> None:
    metrics = tutorial_module("metrics")
    result = metrics.evaluation(torch.zeros(4, dtype=torch.int64), torch.eye(10)[:4])
    assert result.accuracy == 0.25
    assert dict(result.per_class)["T-shirt"] == 0.25
    assert np.isnan(dict(result.per_class)["Bag"])


@pytest.mark.parametrize("rich", [True, False])
def test_a_summary_says_the_same_with_and_without_rich(tutorial_module, capsys, monkeypatch, rich: bool) -> None:
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    path = "long/" * 40 + "name.png"
    tutorial_module("summary").show("Title", [("short", "1 ██"), ("much longer", path)])
    assert capsys.readouterr().out == f"\nTitle\nshort        1 ██\nmuch longer  {path}\n"


def test_bars_are_as_long_as_their_share(tutorial_module) -> None:
    bar = tutorial_module("summary").bar
    assert [len(bar(share)) for share in (0, 0.5, 1, float("nan"))] == [0, 12, 24, 0]


def test_the_test_batch_size_drops_no_image(tutorial_module) -> None:
    even_batch_size = tutorial_module("evaluate").even_batch_size
    assert even_batch_size(10_000) == 100
    for count in (*range(1, 300), 9_973, 9_984, 60_000):
        assert 1 <= even_batch_size(count) <= 100
        assert count % even_batch_size(count) == 0

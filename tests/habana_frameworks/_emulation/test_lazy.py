"""What lazy mode would have gathered, and what it says of mark_step."""

import json

import pytest

pytestmark = pytest.mark.slow


def test_graphs_are_counted_with_their_lines_and_new_shapes_compile_again(alone, tmp_path):
    def program():
        import torch

        import habana_frameworks.torch.core as htcore

        for rows in (2, 2, 3, 3, 2):
            torch.ones(rows, 4, device="hpu").add_(1).mul_(2)
            htcore.mark_step()
        htcore.mark_step()

    ran = alone(program, PT_HPU_LAZY_MODE="1", PILOTAGE_HPU_SUMMARY="summary.json")
    found = json.loads((tmp_path / "summary.json").read_text())
    assert "(lazy mode)" in ran.stderr
    assert "Lazy mode would have run 5 graphs" in ran.stderr
    assert (found["graphs"], found["compilations"], found["recompilations_by_shape"], found["cache_hits"]) == (
        5,
        2,
        1,
        3,
    )
    assert (found["idle_marks"], found["cut_by_reading"]) == (1, 0)
    assert sorted(found["marks_by_line"].values()) == [1, 5]
    assert all("program.py:" in line for line in found["marks_by_line"])


def test_reading_a_value_ends_a_graph(alone, tmp_path):
    def program():
        import torch

        import habana_frameworks.torch.core  # noqa: F401

        assert torch.ones(3, device="hpu").sum().item() == 3

    alone(program, PT_HPU_LAZY_MODE="1", PILOTAGE_HPU_SUMMARY="summary.json")
    assert json.loads((tmp_path / "summary.json").read_text())["cut_by_reading"] == 1


def test_a_missing_mark_step_changes_no_result_and_is_noticed_in_lazy_mode_alone(alone):
    def program():
        import os
        import warnings

        import torch

        import habana_frameworks.torch.core as htcore

        def train(mark):
            torch.manual_seed(7)
            network = torch.nn.Linear(3, 1).to("hpu")
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
            for _ in range(3):
                optimizer.zero_grad()
                network(torch.ones(2, 3, device="hpu")).sum().backward()
                optimizer.step()
                mark()
            return network.weight.detach().cpu()

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            unmarked = train(lambda: None)
        assert ["mark_step" in str(each.message) for each in caught] == [True] * (os.environ["PT_HPU_LAZY_MODE"] == "1")
        htcore.mark_step()
        assert torch.equal(unmarked, train(htcore.mark_step))

    for mode in ("0", "1", "2"):
        alone(program, PT_HPU_LAZY_MODE=mode)


def test_a_mode_set_after_the_import_is_warned_of(alone):
    def program():
        import os
        import warnings

        import habana_frameworks.torch.core as htcore

        os.environ["PT_HPU_LAZY_MODE"] = "1"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            htcore.mark_step()
            htcore.mark_step()
        assert ["PT_HPU_LAZY_MODE was changed to '1'" in str(each.message) for each in caught] == [True]

    alone(program)

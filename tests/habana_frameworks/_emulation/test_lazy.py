"""The graphs of lazy mode, and its reports about mark_step."""

import json
import os
import subprocess
import sys

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
    (busy, figures), (idle, _) = found["lines"].items()
    assert (figures["graphs"], figures["recompilations_by_shape"], figures["ending"]) == (5, 1, "mark_step")
    assert f"{busy} (mark_step): 5 graphs of 4 operations, 2 compiled, 1 of them for new shapes" in ran.stderr
    assert found["excessive_marks"] == [idle]
    assert f"Excessive mark_step at {idle}: 1 calls with nothing to run" in ran.stderr
    assert [line.rpartition("/")[2].partition(":")[0] for line in (busy, idle)] == ["program.py", "program.py"]


def test_missing_and_excessive_marks_are_reported_with_their_lines(alone, tmp_path):
    def program():
        import warnings

        import torch

        import habana_frameworks.torch.core as htcore

        network = torch.nn.Linear(3, 1).to("hpu")
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

        def train(after_backward, after_step):
            for _ in range(3):
                loss = network(torch.ones(2, 3, device="hpu")).sum()
                loss.backward()
                after_backward(loss)
                optimizer.step()
                after_step()

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            train(lambda loss: None, lambda: None)  # missing
        assert ["program.py:" in str(each.message) for each in caught] == [True]
        htcore.mark_step()
        train(lambda loss: None, htcore.mark_step)  # missing after backward
        train(lambda loss: loss.item(), htcore.mark_step)  # read
        for _ in range(20):
            torch.ones(2, device="hpu")
            htcore.mark_step()  # next to nothing

    ran = alone(program, PT_HPU_LAZY_MODE="1", PILOTAGE_HPU_SUMMARY="summary.json")
    found = json.loads((tmp_path / "summary.json").read_text())
    program_lines = (tmp_path / "program.py").read_text().splitlines()

    def source(line):
        return program_lines[int(line.rpartition(":")[2]) - 1].strip()

    (update,) = found["unmarked_updates"]
    assert (source(update), found["unmarked_updates"][update]) == ("optimizer.step()", 2)
    assert found["once_marked_updates"] == {update: 3}
    assert [source(line) for line in found["excessive_marks"]] == ["htcore.mark_step()  # next to nothing"]
    (reading,) = (line for line, figures in found["lines"].items() if figures["ending"] == "a value was read")
    assert (source(reading).endswith("# read"), found["cut_by_reading"]) == (True, 3)
    assert ran.stderr.count("Missing mark_step at ") == 2


def test_fused_optimizers_mark_their_own_graphs_and_a_run_that_dies_counts_nothing(alone, tmp_path):
    def program():
        import torch

        import habana_frameworks.torch.core as htcore
        from habana_frameworks.torch.hpex.optimizers import FusedSGD

        network = torch.nn.Linear(3, 1).to("hpu")
        optimizer = FusedSGD(network.parameters(), 0.1)
        for _ in range(3):
            network(torch.ones(2, 3, device="hpu")).sum().backward()
            optimizer.step()
            htcore.mark_step()

    ran = alone(program, PT_HPU_LAZY_MODE="1", PILOTAGE_HPU_SUMMARY="summary.json")
    found = json.loads((tmp_path / "summary.json").read_text())
    assert (found["graphs"], found["idle_marks"], found["excessive_marks"]) == (6, 0, [])
    assert "a call that marks the step itself" in ran.stderr

    for dying in ("raise SystemError('early')", "pass"):
        script = f"import habana_frameworks.torch.core, torch\n{dying}\n"
        environment = {**os.environ, "PT_HPU_LAZY_MODE": "1"}
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
        assert "No Gaudi found" in ended.stderr
        assert "Lazy mode would have run" not in ended.stderr


def test_marks_change_no_results_and_eager_mode_does_not_report_missing_ones(alone):
    def program():
        import torch

        import habana_frameworks.torch.core as htcore

        def train(mark):
            torch.manual_seed(7)
            network = torch.nn.Linear(3, 1).to("hpu")
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
            for _ in range(3):
                network(torch.ones(2, 3, device="hpu")).sum().backward()
                optimizer.step()
                mark()
            return network.weight.detach().cpu()

        assert torch.equal(train(lambda: None), train(htcore.mark_step))

    ran = alone(program, PT_HPU_LAZY_MODE="2")
    assert "(eager mode)" in ran.stderr
    assert "Lazy mode" not in ran.stderr


def test_changing_the_mode_after_the_import_warns(alone):
    def program():
        import os
        import warnings

        import torch

        import habana_frameworks.torch.core as htcore

        parameter = torch.ones(1, requires_grad=True)
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        for mode, noticed_by in (("1", htcore.mark_step), ("2", optimizer.step)):
            os.environ["PT_HPU_LAZY_MODE"] = mode
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                noticed_by()
                noticed_by()
            assert [f"was changed to '{mode}' after" in str(each.message) for each in caught] == [True]
        os.environ["PT_HPU_LAZY_MODE"] = "0"

    assert "PT_HPU_LAZY_MODE was changed to '0' after" in alone(program).stderr

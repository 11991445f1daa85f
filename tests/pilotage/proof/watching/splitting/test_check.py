from threading import Thread

import pytest
import torch
from torch import nn

from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.splitting.check import SplitCheck
from pilotage.proof.watching.watch import Watch


@pytest.fixture
def watch(tmp_path):
    return Watch(WatchSettings(folder=str(tmp_path), steps=12))


@pytest.fixture
def noted(watch, monkeypatch):
    found = []
    monkeypatch.setattr(watch, "note", lambda event, **fields: found.append(fields))
    return found


def in_thread(function, *args):
    failed = []

    def run():
        try:
            function(*args)
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    assert not failed


def test_batches_that_another_thread_gets_are_not_looked_at(watch, noted):
    check, model = SplitCheck(watch), nn.Linear(4, 1)
    batches = [torch.ones(6, 4) for _ in range(4)]
    in_thread(check.at_batch, batches[:1])
    check.at_backward(model(batches[0]).sum(), {})
    watch.updates = 1
    check.after_update()
    in_thread(check.at_batch, batches[1:2])
    in_thread(check.at_batch, batches[2:3])
    facts = {}
    check.at_backward(model(batches[1]).sum(), facts)
    assert facts["computed_in"] == {"float32": 1}
    assert [each["line"] for each in noted] == [None]
    in_thread(check.at_batch, batches[3:])
    assert check.is_done


def test_only_the_thread_that_began_a_recording_ends_it(watch, noted):
    check, model = SplitCheck(watch), nn.Linear(4, 1)
    watch.updates = 1
    check.after_update()
    in_thread(check.at_backward, model(torch.ones(6, 4)).sum(), {})
    assert not check.is_done
    check.at_backward(model(torch.ones(6, 4)).sum(), {})
    assert check.is_done


def test_the_batch_that_went_into_the_forward_pass_may_be_an_earlier_one(watch, noted, line_of):
    check, model = SplitCheck(watch), nn.Linear(4, 3)
    first, second, third = (torch.randn(size, 4) for size in (6, 6, 2))
    check.at_batch([first])
    check.at_batch([second])
    check.at_backward(model(first).sum(), {})
    watch.updates = 1
    check.after_update()
    check.at_batch([third])
    scores = torch.log_softmax(model(second), 0)  # softmax over the batch
    check.at_backward(scores[:, 0].sum(), {})
    assert [each["line"] for each in noted] == [line_of("softmax over the batch")]


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")
def test_a_record_that_ends_inside_a_compiled_call_is_left_after_it(watch, noted):
    check, model = SplitCheck(watch), nn.Linear(4, 1)
    facts = {}

    @torch.compile(backend="eager")
    def step(batch):
        torch._dynamo.graph_break()
        check.at_backward(model(batch).sum(), facts)

    watch.updates = 1
    check.after_update()
    step(torch.ones(6, 4))
    assert facts["computed_in"] == {"float32": 1}
    assert not check.is_over
    check.after_update()
    assert check.is_over
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None

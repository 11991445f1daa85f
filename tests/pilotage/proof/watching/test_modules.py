import warnings

import pytest
import torch
from torch import nn

from pilotage.proof.watching.modules import ModeCheck, ModuleWatch, _is_behind
from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.watch import Watch


def network():
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.1))


def test_a_model_in_evaluation_mode_is_seen():
    model = network()
    check = ModeCheck(model)
    assert not check.is_in_eval_mode()
    model.eval()
    assert check.is_in_eval_mode()
    assert not check.is_in_eval_mode(dict.fromkeys(model.modules(), True))


def test_a_model_inside_of_a_wrapper_that_trains_is_seen():
    outer = nn.Sequential(network(), nn.Linear(4, 1))
    outer[0].eval()
    assert ModeCheck(outer).is_in_eval_mode()


def test_statistics_that_are_frozen_on_purpose_do_not_count_as_evaluation():
    model = network()
    for part in (model[1], model[2]):
        part.eval()
    assert not ModeCheck(model).is_in_eval_mode()


def test_a_frozen_part_may_be_in_evaluation_mode():
    model = nn.Sequential(network(), nn.Linear(4, 1))
    model[0].requires_grad_(False).eval()
    assert not ModeCheck(model).is_in_eval_mode()


def test_a_model_that_does_the_same_in_both_modes_does_not_count():
    assert not ModeCheck(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.0)).eval()).is_in_eval_mode()


@pytest.mark.parametrize(("factor", "is_behind"), [(2.0, True), (None, False)])
def test_a_root_is_computed_from_the_loss_or_not(factor, is_behind):
    weight = torch.ones(3, requires_grad=True)
    loss = weight.square().sum()
    root = loss * factor if factor else weight.abs().sum()
    assert _is_behind(loss, root) is is_behind
    assert _is_behind(loss, loss)


def test_torch_does_not_warn_of_hooks_that_are_not_the_scripts(modules):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        modules._look_for_outermost()
        warnings.warn("Using `torch.compile(module)` when there are global hooks on modules", stacklevel=1)
    assert not found


@pytest.fixture
def modules(tmp_path):
    found = ModuleWatch(Watch(WatchSettings(folder=str(tmp_path), steps=1)))
    yield found
    for hook in found._hooks:
        hook.remove()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Using `torch.compile")
def test_a_compiled_module_is_followed_and_its_parts_are_not(modules):
    modules._look_for_outermost()
    model = network()
    fast = torch.compile(model, backend="eager", fullgraph=True)
    batch = torch.ones(3, 4)
    fast(batch).sum().backward()
    assert modules.outermost is fast
    assert modules.rows == 3
    assert modules.given == {batch.data_ptr()}
    torch.compiler.reset()


@pytest.fixture
def distilled(modules):
    """The facts of an update by the loss of a student that follows a teacher in evaluation mode."""
    modules._look_for_outermost()
    teacher, student, batch = network().eval(), network(), torch.randn(5, 4)

    def update():
        wanted = teacher(batch).square().mean().detach()
        loss, facts = (student(batch).square().mean() - wanted).abs(), {}
        modules.at_backward(loss, facts)
        return facts

    return student, update


def test_a_teacher_in_evaluation_mode_is_not_what_is_trained(modules, distilled):
    student, update = distilled
    assert [update().get("in_eval_mode") for _ in range(2)] == [None, None]
    modules._watch.updates = 1
    assert [update().get("in_eval_mode") for _ in range(2)] == [None, None]
    assert modules.outermost is student


def test_a_student_in_evaluation_mode_is_seen(modules, distilled):
    student, update = distilled
    student.eval()
    modules._watch.updates = 1
    assert update()["in_eval_mode"]


def test_the_loss_of_a_teacher_is_not_one_that_training_misses(modules):
    modules._look_for_outermost()

    class WithLoss(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network()

        def forward(self, batch):
            return self.network(batch).square().mean()

    teacher, student, batch, facts = WithLoss(), WithLoss(), torch.randn(5, 4), {}
    wanted = teacher(batch).detach()
    modules.at_backward((student(batch) - wanted).abs(), facts)
    assert facts == {"module": "WithLoss"}

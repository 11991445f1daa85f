"""Step closures wait for mark_step in lazy mode, and are dropped in eager mode."""

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mode", ["0", "1"])
def test_closures_run_in_order_at_the_next_mark_of_lazy_mode(alone, mode):
    def program():
        import torch

        import habana_frameworks.torch.core as htcore

        said = []

        def again():
            said.append("again")
            htcore.add_step_closure(said.append, ("later",))

        for word in ("one", "two"):
            htcore.step_closure.add_step_closure(said.append, (word,))
        htcore.add_step_closure(again)
        assert said == []
        htcore.mark_step("hpu", sync=True)
        assert said == (["one", "two", "again"] if htcore.is_lazy() else [])
        htcore.iter_mark_step()
        htcore.step_closure._mark_step_if_lazy()
        assert said == (["one", "two", "again", "later"] if htcore.is_lazy() else [])

        model = torch.nn.Linear(2, 2)
        assert htcore.hpu_set_env(model) is model
        assert htcore.hpu_set_inference_env(model) is model
        htcore.hpu_initialize(model, mark_only_scales_as_const=True)
        htcore.hpu_teardown_inference_env()

    ran = alone(program, PT_HPU_LAZY_MODE=mode)
    assert ("eager mode never calls these functions" in ran.stderr) is (mode == "0")

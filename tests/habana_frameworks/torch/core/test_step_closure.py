"""Step closures wait for mark_step."""

import pytest


@pytest.mark.slow
def test_closures_run_in_order_at_the_next_mark(alone):
    def program():
        import habana_frameworks.torch.core as htcore

        said = []
        for word in ("one", "two"):
            htcore.step_closure.add_step_closure(said.append, (word,))
        assert said == []
        htcore.mark_step()
        htcore.mark_step(sync=True)
        assert said == ["one", "two"]

    alone(program)

"""Starting the bridge explicitly, and its mode."""

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("mode", "is_lazy"), [("0", "False"), ("1", "True")])
def test_the_bridge_can_be_started_explicitly_and_reports_its_mode(alone, mode, is_lazy):
    def program():
        import torch

        from habana_frameworks.torch.utils.internal import is_lazy
        from habana_frameworks.torch.utils.library_loader import is_habana_available, load_habana_module

        load_habana_module()
        assert is_habana_available()
        assert torch.ones(2, device="hpu").is_hpu
        print(is_lazy())

    assert alone(program, PT_HPU_LAZY_MODE=mode).stdout.strip() == is_lazy

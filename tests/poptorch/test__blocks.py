import pickle

import pytest

from poptorch import _blocks
from poptorch.ops import blocks


@pytest.mark.parametrize("name", ["Block", "LegacyBeginBlockFn", "_BlockStart"])
def test_a_pickle_that_names_the_former_module_loads(name):
    assert pickle.loads(f"cpoptorch._blocks\n{name}\n.".encode()) is getattr(blocks, name) is getattr(_blocks, name)

from pathlib import Path

from pilotage.porting.driver import port_paths
from pilotage.porting.project import Project
from pilotage.porting.rules.hpu.mode_enum import mode_enum
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target


def test_the_modes_of_a_program_stay_and_one_is_added(tmp_path):
    (tmp_path / "config.py").write_text(
        "from enum import Enum\n\n\nclass ComputeMode(Enum):\n    CPU   = 0\n    GPU   = 1\n    DPCPP = 2\n"
    )
    (tmp_path / "trainer.py").write_text(
        "import torch\nfrom config import ComputeMode\n\n\ndef backend(mode):\n"
        "    if mode == ComputeMode.CPU: return 'gloo'\n    elif mode == ComputeMode.GPU: return 'nccl'\n"
    )
    config, trainer = port_paths([tmp_path], Target.HPU).files
    assert config.after.endswith("    DPCPP = 2\n    HPU   = 3\n")
    assert trainer.after.endswith(
        "    elif mode == ComputeMode.GPU: return 'nccl'\n    elif mode == ComputeMode.HPU: return 'hccl'\n"
    )
    assert "except ImportError:\n    pass" in trainer.after


def test_other_enumerations_do_not_choose_a_device():
    text = "from enum import Enum\n\n\nclass Colour(Enum):\n    CPU = 0\n    RED = 1\n"
    assert mode_enum(Project([Source(Path("config.py"), text)])) is None

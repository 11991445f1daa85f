from pathlib import Path

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target


def ported(text):
    return port_texts({Path("script.py"): text}, Target.HPU).files[0].after


def test_the_bridge_is_imported_below_torch_after_its_mode_is_set():
    lines = ported('import torch\n\ndevice = torch.device("cuda")\n').splitlines()
    mode = next(number for number, line in enumerate(lines) if "PT_HPU_LAZY_MODE" in line)
    bridge = next(number for number, line in enumerate(lines) if line.startswith("import habana_frameworks.torch.core"))
    assert lines.index("import torch") < mode < bridge


def test_a_script_that_has_the_bridge_or_needs_none_gets_no_import():
    own = 'import torch\nimport habana_frameworks.torch.core\n\ndevice = torch.device("cuda")\n'
    assert ported(own).count("import habana_frameworks") == 1
    assert "habana" not in ported("import torch\nprint(torch.ones(2))\n")

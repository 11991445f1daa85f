from pathlib import Path

import pytest

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target


def body(text):
    """The port of a script that imports torch, without the imports."""
    after = port_texts({Path("script.py"): f"import torch\n{text}"}, Target.HPU).files[0].after
    return "".join(
        line for line in after.splitlines(keepends=True) if not line.startswith(("import ", "os.environ", "from "))
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("d = torch.device('cuda:1')\n", "d = torch.device('hpu')\n"),
        ('d = torch.device("cuda", rank)\n', 'd = torch.device("hpu")\n'),
        ('d = f"cuda:{rank}"\n', 'd = "hpu"\n'),
        ("d = 'cuda:{}'.format(rank)\n", 'd = "hpu"\n'),
        ("x = x.cuda(0, non_blocking=True)\n", 'x = x.to("hpu", non_blocking=True)\n'),
        ("print('cuda is here')\n", "print('cuda is here')\n"),
        ("'cuda'\n", "'cuda'\n"),
        ("n = torch.cuda.device_count()\n", "n = torch.hpu.device_count()\n"),
        ("if a:\n    torch.cuda.set_device(1)\n", "if a:\n    pass  # the launcher's variables select the card\n"),
    ],
)
def test_devices_are_named_hpu_and_other_text_stays(before, after):
    assert body(before) == after


def test_functions_with_another_name_on_the_card_are_renamed():
    text = "import torch\ntorch.cuda.reset_max_memory_allocated()\n"
    report = port_texts({Path("script.py"): text}, Target.HPU)
    assert "torch.hpu.reset_peak_memory_stats()\n" in report.files[0].after
    assert report.is_complete

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


def test_the_number_of_a_card_becomes_the_device():
    text = """\
import os

rank = int(os.environ["LOCAL_RANK"])
model = make().to(rank)
x = x.to(device=rank, non_blocking=True)
place = rank if torch.cuda.is_available() else "cpu"
gpu = "cpu"
y = y.to(gpu)
"""
    after = port_texts({Path("script.py"): f"import torch\n{text}"}, Target.HPU).files[0].after
    assert 'model = make().to("hpu")\nx = x.to(device="hpu", non_blocking=True)\n' in after
    assert 'place = "hpu" if torch.hpu.is_available() else "cpu"\n' in after
    assert "y = y.to(gpu)\n" in after


def test_a_condition_around_data_parallel_goes_with_it():
    text = """\
import torch
model = make()
if torch.cuda.device_count() > 1:
    model = torch.nn.DataParallel(model)
model.cuda()
"""
    after = port_texts({Path("script.py"): text}, Target.HPU).files[0].after
    assert 'model = make()\nmodel.to("hpu")\n' in after


def test_mixed_precision_that_asks_for_cuda_asks_for_the_card():
    text = "import torch\nwith torch.cuda.amp.autocast(enabled=torch.cuda.is_available()):\n    pass\n"
    after = port_texts({Path("script.py"): text}, Target.HPU).files[0].after
    assert 'torch.autocast("hpu", dtype=torch.bfloat16, enabled=torch.hpu.is_available())' in after

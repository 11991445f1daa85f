import ast
from pathlib import Path

import pytest

from pilotage.porting.analysis.code.names import Names
from pilotage.porting.places import KINDS, places_of
from pilotage.porting.sources.source import Source


def kinds(text):
    source = Source(Path("script.py"), f"import torch\nfrom torch.nn.parallel import DataParallel as DP\n{text}\n")
    return [kind for node in ast.walk(source.tree) for kind in places_of(Names(source), node)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("loss.backward()", "backward passes"),
        ("torch.optim.Adam(p)", "optimizers"),
        ("self.opt.step()", "optimizer steps"),
        ("torch.optim.lr_scheduler.StepLR(o, 1)", "schedules of learning rates"),
        ("torch.utils.data.DataLoader(d)", "loaders"),
        ("x = 'cuda:1'", "devices by name"),
        ("x.to(self.device)", ".cuda() and .to(device)"),
        ("x.cuda()", ".cuda() and .to(device)"),
        ("torch.cuda.empty_cache()", "torch.cuda functions"),
        ("torch.cuda.amp.autocast()", "mixed precision"),
        ("DP(model)", "DataParallel and DistributedDataParallel"),
        ("backend = 'nccl'", "process groups and backends"),
        ("torch.nn.utils.clip_grad_norm_(p, 1)", "clipped gradients"),
        ("w.register_hook(f)", "gradient hooks and torch.autograd.grad"),
        ("loss.item()", "values read to the host"),
        ("torch.save(m, 'x')", "saved and loaded weights"),
        ("torch.compile(m)", "torch.compile and torch.jit"),
        ("import flash_attn", "packages for CUDA only"),
        ("os.system('nvidia-smi -L')", "commands for NVIDIA's driver"),
    ],
)
def test_each_kind_of_place_is_known(text, kind):
    assert kinds(text) == [kind]
    assert kind in KINDS


@pytest.mark.parametrize("text", ["x.to(torch.float32)", "x = 'cudart'", "walker.step()", "print('backward')"])
def test_other_code_is_not_a_place(text):
    assert kinds(text) == []

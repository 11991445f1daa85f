"""Every code edit of the three published conversions of CosmicTagger, if the documents are present (PILOTAGE_SEEDS).

Each edit is taken from its document and executed as part of a trainer like the original's.
"""

import contextlib
import logging
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import hydra
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

import popdist
import popdist.poptorch
import poptorch
from cosmictagger.configuration.choices import ComputeMode, OptimizerKind
from cosmictagger.configuration.network import A21
from cosmictagger.configuration.run import Run
from cosmictagger.networks.uresnet import build

SMALL = replace(A21, depth=1, n_initial_filters=2, bottleneck_deepest=2, blocks_deepest_layer=1)


@pytest.fixture(scope="module")
def code():
    """The code blocks of a document, by its number."""
    folder = os.environ.get("PILOTAGE_SEEDS")
    if not folder:
        pytest.skip("PILOTAGE_SEEDS does not name the directory of the documents.")

    def read(number):
        found = sorted(Path(folder).glob(f"{number}_*.txt"))
        if not found:
            pytest.skip(f"There is no document {number}_*.txt in PILOTAGE_SEEDS.")
        text = found[0].read_text(encoding="utf-8")
        quoted = re.sub(r"^> ?", "", text, flags=re.M)
        return [
            textwrap.dedent(block) for block in re.findall(r"^```(?:python|pytorch)\n(.*?)^```", quoted, re.M | re.S)
        ]

    return read


def block(blocks, *words):
    """The only block that contains all words; the last one if an edit shows the code before and after."""
    return [each for each in blocks if all(word in each for word in words)][-1]


def trainer(mode, *, training=True, kind=OptimizerKind.adam, lazy=False):
    """What the edits find in the original's trainer."""
    torch.manual_seed(0)
    network = build(SMALL)
    args = SimpleNamespace(
        run=Run(id="x", compute_mode=mode, lazy_mode=lazy),
        mode=SimpleNamespace(quantization_aware=False, optimizer=SimpleNamespace(name=kind)),
        num_replicas=2,
    )
    return SimpleNamespace(
        args=args, _net=network, _raw_net=network, _global_step=7, is_training=lambda: training, _instance=0
    )


def execute(source, self, **names):
    known = {
        "self": self,
        "torch": torch,
        "os": os,
        "logging": logging,
        "contextlib": contextlib,
        "poptorch": poptorch,
        "popdist": popdist,
        "ComputeMode": ComputeMode,
        "OptimizerKind": OptimizerKind,
        **names,
    }
    exec(compile(source, "<edit>", "exec"), known)
    return known


# Document 000: from Graphcore to PopDist


@pytest.fixture
def under_poprun(monkeypatch):
    values = {"POPDIST_NUM_TOTAL_REPLICAS": "1", "POPDIST_NUM_LOCAL_REPLICAS": "1", "POPDIST_REPLICA_INDEX_OFFSET": "0"}
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def test_the_imports_of_popdist(code):
    assert "popdist" in execute(code("000")[0], None)


def test_instances_are_numbered(code, under_poprun):
    self = trainer(ComputeMode.IPU)
    execute(block(code("000"), "popdist.init()"), self)
    assert self._instance == popdist.getInstanceIndex() == 0
    self = trainer(ComputeMode.CPU)
    execute(block(code("000"), "popdist.init()"), self)
    assert self._instance == 0


def test_checkpoints_are_named_after_their_instance(code):
    known = execute(block(code("000"), "file_path", "_instance"), trainer(ComputeMode.IPU), file_path="run/")
    assert known["name"] == "run/model-7-0.ckpt"


def test_only_one_instance_logs(code, caplog, under_poprun):
    log = execute(block(code("000"), "def log_in_single_instance"), None)["log_in_single_instance"]
    with caplog.at_level(logging.INFO):
        log(trainer(ComputeMode.IPU), "from an instance")
        log(trainer(ComputeMode.CPU), "from a processor")
    assert [record.message for record in caplog.records] == ["from an instance", "from a processor"]


@pytest.mark.parametrize("training", [True, False])
def test_models_are_wrapped_with_popdists_options(code, training, under_poprun):
    self = trainer(ComputeMode.IPU, training=training)
    execute(block(code("000"), "popdist.poptorch.Options()"), self)
    assert isinstance(self._net, poptorch.PoplarExecutor)


def test_models_are_wrapped_with_replicas_of_one_process(code):
    self = trainer(ComputeMode.IPU)
    execute(block(code("000"), "popdist.poptorch.Options()"), self)
    assert self._net.options.replication_factor == 2


# Document 001: from a processor to the IPU


def test_the_compute_modes_have_the_documents_numbers(code):
    for number, name in (("001", "IPU"), ("002", "HPU")):
        source = block(code(number), "class ComputeMode").replace("#...", "pass")
        enum = execute("from enum import Enum\n" + source, None)["ComputeMode"]
        assert enum[name].value == ComputeMode[name].value


def test_the_network_is_wrapped_after_quantization(code):
    blocks = code("001")
    self = trainer(ComputeMode.IPU)
    execute(block(blocks, "prepare_qat"), self)
    assert self._net is self._raw_net
    execute(blocks[1] + block(blocks, "compute_mode == ComputeMode.IPU", "opts = poptorch.Options()"), self)
    assert isinstance(self._net, poptorch.PoplarExecutor)


@pytest.mark.parametrize("kind", [OptimizerKind.adam, OptimizerKind.rmsprop])
@pytest.mark.parametrize(("mode", "family"), [(ComputeMode.IPU, poptorch.optim), (ComputeMode.CPU, torch.optim)])
def test_the_optimizer_is_poptorchs_on_an_ipu(code, kind, mode, family):
    self = trainer(mode, kind=kind)
    execute(block(code("001"), "poptorch.optim.RMSprop"), self)
    assert type(self._opt) is getattr(family, {"adam": "Adam", "rmsprop": "RMSprop"}[kind.name])
    assert self._opt.param_groups[0]["lr"] == 1.0


def focal(labels, planes):
    """The original's loss, called with labels and scores of each plane."""
    total = 0
    for scores, label in zip(planes, labels, strict=True):
        entropy = F.cross_entropy(scores, label, reduction="none")
        weights = (1 - scores.detach().softmax(1).gather(1, label.unsqueeze(1))[:, 0]).square()
        total = total + (weights * entropy).sum() / weights.sum()
    return total


@pytest.mark.slow
def test_a_forward_with_the_loss_trains_on_the_device(code):
    blocks = code("001")
    head, body = block(blocks, "def forward", "loss_calculator=None"), block(blocks, "identity_loss")
    source = head + textwrap.indent("x = list(self.network(input_tensor))\n" + body, "    ")
    forward = execute(source, None)["forward"]

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.network = build(SMALL)

    Model.forward = forward
    image = torch.rand(1, 3, 16, 16)
    label = (image * 3).long().float()
    model, eager = Model(), Model()
    step = poptorch.trainingModel(model, poptorch.Options(), poptorch.optim.SGD(model.parameters(), lr=0.1))
    planes, labels, loss = step(image, focal, label)
    expected = eager(image, focal, label)[-1]
    assert len(planes) == len(labels) == 3
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert step(image, focal, label)[-1].item() != loss.item()
    assert len(eager(image)) == 3


@pytest.mark.slow
def test_the_loop_over_poptorchs_loader_trains(code, tmp_path):
    """The document saves and evaluates the model afterwards, without retrieving the weights."""
    blocks = code("001")

    class Model(torch.nn.Linear):
        def forward(self, data, labels=None):
            scores = super().forward(data)
            return scores if labels is None else (scores, F.cross_entropy(scores, labels))

    torch.manual_seed(0)
    model = Model(4, 2)
    data = torch.randn(64, 4)
    events = torch.utils.data.TensorDataset(data, (data.sum(1) > 0).long())
    loader = block(blocks, "train_dataloader = poptorch.DataLoader").replace("num_workers=20", "num_workers=0")
    source = [loader, block(blocks, "optimizer = poptorch.optim.SGD"), block(blocks, "poptorch_model = ")]
    known = execute("\n".join(source), None, train_dataset=events, model=model)
    before = F.cross_entropy(model(data), events.tensors[1]).item()
    warm_up = {"training_model": known["poptorch_model"], "data": data[:16], "labels": events.tensors[1][:16]}
    exec(block(blocks, "# Warmup"), warm_up)
    exec(block(blocks, "for epoch in tqdm"), known | {"tqdm": lambda sequence, **_: sequence})
    torch.save(model.state_dict(), tmp_path / "model.pt")
    saved = Model(4, 2)
    saved.load_state_dict(torch.load(tmp_path / "model.pt"))
    assert F.cross_entropy(saved(data), events.tensors[1]).item() < before
    assert torch.equal(model(data), saved(data))
    known["poptorch_model"].destroy()


# Document 002: from a processor to Gaudi


def test_gaudis_configuration(code):
    source = block(code("002"), "class Run", "lazy_mode")
    assert "lazy_mode:          bool        = False" in source
    assert Run().lazy_mode is False


def test_the_backend_is_hccl(code):
    source = "if False: pass\n" + block(code("002"), "backend = 'hccl'")
    assert execute(source, trainer(ComputeMode.HPU))["backend"] == "hccl"


def test_the_context_of_a_processor_is_an_instance(code):
    source = "def context(): \n    if False: pass\n" + textwrap.indent(
        block(code("002"), "contextlib.nullcontext()"), "    "
    )
    with execute("import contextlib\n" + source, None)["context"]():
        pass


def test_the_device_is_hpu(code):
    source = "if False: pass\n" + block(code("002"), 'torch.device("hpu")')
    assert execute(source, trainer(ComputeMode.HPU))["device"].type == "hpu"


def test_the_imports_of_gaudis_trainer(code):
    assert "TRUE" in execute(block(code("002"), "from pickle import TRUE"), None)


ON_A_CARD = """
import contextlib, datetime, os
from types import SimpleNamespace
import torch
from cosmictagger.configuration.choices import ComputeMode

run = SimpleNamespace(compute_mode=ComputeMode.HPU, lazy_mode={lazy})
self, local_rank, rank, size = SimpleNamespace(args=SimpleNamespace(run=run)), 0, 0, 1
init_method = "env://"
{mode}
{library}
if False: pass
{backend}
{group}
if False: pass
{device}
total = torch.ones(2, device=device)
torch.distributed.all_reduce(total)
self.htcore.mark_step()
found = torch.distributed.get_backend(), os.environ["ID"], os.environ["LOCAL_RANK"], os.environ["PT_HPU_LAZY_MODE"]
print(*found, total.device.type, total.tolist())
torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("lazy", "value"), [(True, "1"), pytest.param(False, "2", marks=pytest.mark.long)])
def test_library_mode_backend_group_and_device_work_together(code, tmp_path, free_port, lazy, value):
    blocks = code("002")
    script = tmp_path / "trainer.py"
    parts = {
        "mode": block(blocks, "PT_HPU_LAZY_MODE"),
        "library": block(blocks, "torch.distributed.hccl"),
        "backend": block(blocks, "backend = 'hccl'"),
        "group": block(blocks, 'os.environ["ID"]'),
        "device": block(blocks, 'torch.device("hpu")'),
    }
    script.write_text(ON_A_CARD.format(lazy=lazy, **parts))
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=os.environ | meeting)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split("\n")[0] == f"hccl 0 0 {value} hpu [1.0, 1.0]"


@pytest.mark.parametrize(("mode", "called"), [(ComputeMode.HPU, True), (ComputeMode.CPU, False)])
def test_tensorflows_trainer_loads_habanas_module_first(code, mode, called, caplog):
    blocks = code("002")
    head = block(blocks, "def initialize(self, io_only=False):")
    edit = textwrap.indent(block(blocks, "from habana_frameworks.tensorflow import load_habana_module"), "    ")
    initialize = execute(head + edit + "    return 'initialized'\n", None)["initialize"]
    with caplog.at_level(logging.WARNING):
        assert initialize(trainer(mode)) == "initialized"
    assert ("TensorFlow stays on the CPU" in caplog.text) is called


def test_every_edit_of_the_documents_is_known(code):
    """A document with another number of blocks has edits that no test above executes."""
    assert [len(code(number)) for number in ("000", "001", "002")] == [7, 14, 24]


def test_hydras_decorator_works_without_a_version(code):
    source = block(code("002"), "@hydra.main(config_path=").replace('config_path="../src/config"', "config_path=None")
    with pytest.warns(UserWarning, match="version_base"):
        execute(source + "def main(config): pass\n", None, hydra=hydra)

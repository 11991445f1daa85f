"""Compiled models that are saved, moved and loaded."""

from __future__ import annotations

import json
import pickletools
import signal
import subprocess
import sys
import textwrap
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch
from pilotage.options.choices import Tier
from pilotage.program.archive import read_archive, write_archive
from poptorch import Options

pytestmark = pytest.mark.slow

Scores = namedtuple("Scores", ["values", "best"])


class Network(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, width)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x, y=None, factor=2.0):
        self.count.add_(1)
        out = self.drop(self.layer(x)) * factor
        return out if y is None else {"out": out, "loss": functional.mse_loss(out, y)}


X, Y = torch.linspace(-1, 1, 12).reshape(4, 3) ** 3, torch.zeros(4, 2)


def options(seed=None):
    made = poptorch.Options().showCompilationProgressBar(False)
    return made if seed is None else made.randomSeed(seed)


def trainer(module=None, seed=None, lr=0.1, kind="Adam"):
    module = module or Network()
    return poptorch.trainingModel(
        module, options(seed), optimizer=getattr(poptorch.optim, kind)(module.parameters(), lr=lr)
    )


def losses(model, count=3):
    return [model(X, Y)["loss"].item() for _ in range(count)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.poptorch"


# Going on


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("with_class", [True, False])
def test_training_goes_on_to_the_last_bit_dropout_and_optimizer_included(path, seed, with_class):
    model = trainer(seed=seed)
    losses(model)
    model.save(path)
    expected = losses(model)
    torch.manual_seed(999)
    again = poptorch.load(path, model=Network() if with_class else None)
    assert losses(again) == expected
    assert torch.equal(again.model.layer.weight, model.model.layer.weight)
    assert again.model.count.item() == 6.0


def test_without_the_random_state_only_the_random_numbers_differ(path):
    model = trainer(seed=5)
    losses(model)
    model.save(path, save_rng_state=False)
    first = losses(model, 1)
    again = poptorch.load(path)
    assert torch.equal(again.model.layer.weight, poptorch.load(path).model.layer.weight)
    assert losses(again, 1) != first
    assert losses(poptorch.load(path), 2) == losses(poptorch.load(path), 2)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "LAMB"])
def test_every_optimizer_goes_on(path, kind):
    model = trainer(kind=kind, seed=1)
    losses(model, 2)
    model.save(path)
    assert losses(poptorch.load(path), 2) == losses(model, 2)


def test_a_saved_learning_rate_is_the_one_of_the_last_setting(path):
    module = Network()
    optimizer = poptorch.optim.SGD(module.parameters(), lr=0.1)
    model = poptorch.trainingModel(module, options(), optimizer=optimizer)
    model.compile(X, Y)
    optimizer.param_groups[0]["lr"] = 0.0
    model.setOptimizer(optimizer)
    model.save(path)
    again = poptorch.load(path)
    before = again.model.layer.weight.detach().clone()
    losses(again)
    assert torch.equal(again.model.layer.weight, before)


def test_a_loaded_trainer_takes_an_optimizer(path):
    model = trainer(kind="SGD")
    model.compile(X, Y)
    model.save(path)
    again = poptorch.load(path)
    optimizer = poptorch.optim.SGD(again.model.parameters(), lr=0.0)
    again.setOptimizer(optimizer)
    before = again.model.layer.weight.detach().clone()
    losses(again)
    assert torch.equal(again.model.layer.weight, before)
    assert optimizer.state_dict()["ipu_param"] is not None
    with pytest.raises(poptorch.Error, match="compiled into the program"):
        again.setOptimizer(poptorch.optim.Adam(again.model.parameters(), lr=0.1))


def test_inference_gives_the_same_results(path):
    module = Network().eval()
    model = poptorch.inferenceModel(module, options())
    expected = model(X)
    model.save(path)
    again = poptorch.load(path)
    assert torch.equal(again(X), expected)
    assert again.isCompiled()
    assert not again.trains


def test_what_is_loaded_can_be_saved_again(path, tmp_path):
    model = trainer(seed=3)
    losses(model)
    model.save(path)
    second = poptorch.load(path)
    losses(second, 1)
    second.save(tmp_path / "second")
    losses(model, 1)
    assert losses(poptorch.load(tmp_path / "second")) == losses(model)


def test_outputs_keep_their_structure(path):
    model = poptorch.inferenceModel(lambda x: [Scores(x, x.argmax(1)), {"three": 3, "none": None}], options())
    expected = model(X)
    model.save(path)
    (scores, table) = poptorch.load(path)(X)
    assert type(scores) is Scores
    assert torch.equal(scores.best, expected[0].best)
    assert table == {"three": 3, "none": None}


def test_a_loaded_model_holds_later_calls_to_the_compiled_one(path):
    model = trainer()
    model.compile(X, Y)
    model.save(path)
    again = poptorch.load(path)
    with pytest.raises(poptorch.Error, match=r"expected torch\.Size\(\[4, 3\]\) but got torch\.Size\(\[2, 3\]\)"):
        again(X[:2], Y[:2])
    with pytest.raises(poptorch.Error, match=r"Value mismatch for factor: expected 2\.0 but got 3\.0"):
        again(X, Y, factor=3.0)
    with pytest.raises(poptorch.Error, match="Mandatory parameter x missing"):
        again(y=Y)


# Where and what is written


def test_folders_are_made(tmp_path):
    model = trainer()
    model.compile(X, Y)
    model.save(str(tmp_path / "a" / "b" / "model"))
    assert poptorch.load(str(tmp_path / "a" / "b" / "model")).isCompiled()


def test_a_folder_as_target_gets_the_usual_name_with_a_warning(tmp_path, warnings_of_poptorch):
    model = trainer()
    model.compile(X, Y)
    model.save(tmp_path)
    assert (tmp_path / "model.poptorch").is_file()
    (said,) = warnings_of_poptorch()
    assert "is a directory" in said
    assert "model.poptorch" in said


def test_compiling_and_exporting_is_one_step(path):
    model = trainer(seed=2)
    model.compileAndExport(str(path), X, Y)
    assert model.isCompiled()
    assert losses(poptorch.load(path)) == losses(model)


def test_a_compiled_model_is_exported_as_it_is(path):
    model = trainer(seed=2)
    losses(model)
    model.compileAndExport(path, X, Y)
    assert losses(poptorch.load(path)) == losses(model)


def test_a_file_holds_no_pickle_and_no_code(path):
    model = trainer()
    losses(model)
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        for name in names:
            data = archive.read(name)
            assert not is_pickle(data), name
            if name.endswith(".json"):
                json.loads(data)
    assert {Path(name).suffix for name in names} <= {"", ".json"}


def is_pickle(data):
    if not data.startswith(b"\x80"):
        return False
    try:
        list(pickletools.genops(data))
    except Exception:
        return False
    return True


def test_the_file_runs_where_the_class_is_not(path, tmp_path):
    model = trainer(seed=4)
    losses(model)
    model.save(path)
    expected = losses(model)
    program = f"""
        import sys, torch, poptorch
        model = poptorch.load({str(path)!r})
        X, Y = torch.linspace(-1, 1, 12).reshape(4, 3) ** 3, torch.zeros(4, 2)
        print([model(X, Y)["loss"].item() for _ in range(3)])
        print(type(model.model).__name__, sorted(model.state_dict()))
        assert not any("test__files" in name for name in sys.modules)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    printed = ran.stdout.splitlines()
    assert json.loads(printed[0]) == expected
    assert printed[1] == "BareModule ['count', 'layer.bias', 'layer.weight']"


def test_the_weights_of_a_loaded_model_fit_its_class(path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)
            self.second.weight = self.first.weight
            self.register_buffer("hidden", torch.ones(1), persistent=False)

        def forward(self, x):
            return poptorch.identity_loss(self.second(self.first(x)) + self.hidden, "sum")

    module = Tied()
    model = poptorch.trainingModel(module, options())
    model(torch.ones(1, 2))
    model.save(path)
    again = poptorch.load(path)
    again(torch.ones(1, 2))
    assert again.model.first.weight is again.model.second.weight
    other = Tied()
    other.load_state_dict(again.state_dict())
    assert torch.equal(other.second.bias, again.model.second.bias)


def test_calling_the_bare_module_says_where_its_class_went(path):
    model = trainer()
    model.compile(X, Y)
    model.save(path)
    with pytest.raises(RuntimeError, match="has no Python of its own"):
        poptorch.load(path).model(X)


# With the class, or without the weights


def test_with_its_class_the_model_is_the_users_own(path):
    model = trainer(seed=1)
    losses(model)
    model.save(path)
    module = Network()
    again = poptorch.load(path, model=module)
    assert again.model is module
    assert torch.equal(module.layer.weight, model.model.layer.weight)
    losses(again)
    losses(model)
    assert torch.equal(module.layer.weight, model.model.layer.weight)
    with pytest.raises(RuntimeError, match="already been wrapped"):
        trainer(module)
    with pytest.raises(RuntimeError, match="already been wrapped"):
        poptorch.load(path, model=module)
    again.destroy()
    trainer(module)


def test_with_its_class_a_model_can_be_compiled_again(path):
    model = trainer()
    model.compile(X, Y)
    model.save(path)
    again = poptorch.load(path, model=Network())
    again.destroy()
    assert again(X[:2], Y[:2])["out"].shape == (2, 2)


def test_a_file_without_weights_is_for_the_same_model_alone(path):
    model = trainer(seed=6)
    losses(model)
    model.save(path, export_model=False)
    with pytest.raises(AssertionError, match="export_model=False"):
        poptorch.load(path)
    module = Network()
    module.load_state_dict(model.state_dict())
    again = trainer(module, seed=6)
    again.loadExecutable(path)
    assert again.isCompiled()
    assert again.engine.record.compilations == 0
    assert losses(again) == losses(model)


def test_a_loaded_program_follows_the_optimizer_that_is_there(path):
    trainer(kind="SGD").compileAndExport(path, X, Y, export_model=False)
    module = Network()
    optimizer = poptorch.optim.SGD(module.parameters(), lr=0.0)
    again = poptorch.trainingModel(module, options(), optimizer=optimizer)
    again.loadExecutable(path)
    before = module.layer.weight.detach().clone()
    losses(again)
    assert torch.equal(module.layer.weight, before)
    assert optimizer.state_dict()["ipu_param"]["scaledLearningRate0___specific___layer.bias"].item() == 0.0


def test_a_program_is_not_loaded_over_another(path):
    model = trainer()
    model.compileAndExport(path, X, Y)
    with pytest.raises(poptorch.Error, match=r"already compiled.*destroy\(\)"):
        model.loadExecutable(path)
    model.destroy()
    model.loadExecutable(path)
    assert model.isCompiled()


def test_an_executable_for_something_else_is_refused(path):
    trainer().compileAndExport(path, X, Y)
    with pytest.raises(poptorch.Error, match="holds a model for training, and this one is for inference"):
        poptorch.inferenceModel(Network(), options()).loadExecutable(path)
    for module in (Network(width=5), nn.Linear(3, 2)):
        with pytest.raises(poptorch.Error, match="was written from another model"):
            trainer(module).loadExecutable(path)
        with pytest.raises(poptorch.Error, match="was written from another model"):
            poptorch.load(path, model=module)
    with pytest.raises(poptorch.Error, match="compiled into the program"):
        trainer(kind="SGD").loadExecutable(path)


# Options


def test_options_come_back_and_can_be_edited(path):
    made = options().deviceIterations(2).modelName("net")
    made.Training.gradientAccumulation(2)
    module = Network()
    model = poptorch.trainingModel(module, made)
    model.compile(X, Y)
    model.save(path)
    again = poptorch.load(path)
    assert again.options.device_iterations == 2
    assert again.options.Training.gradient_accumulation == 2
    assert again.options.model_name == "net"
    seen = []
    edited = poptorch.load(path, edit_opts_fn=lambda o: seen.append(o.deviceIterations(1)))
    assert isinstance(seen[0], poptorch.Options)
    assert edited(X[:2], Y[:2])["loss"].shape == ()
    with pytest.raises(AttributeError, match="frozen"):
        edited.options.deviceIterations(3)


@pytest.mark.parametrize(
    "edit",
    [
        lambda o: o.Training.gradientAccumulation(4),
        lambda o: o.replicationFactor(2),
        lambda o: o.Training.accumulationAndReplicationReductionType(poptorch.ReductionType.Sum),
        lambda o: o.Training.setAutomaticLossScaling(True),
    ],
)
def test_settings_that_are_compiled_in_cannot_be_edited(path, edit):
    made = options()
    made.Training.gradientAccumulation(2)
    poptorch.trainingModel(Network(), made).compileAndExport(path, X, Y)
    with pytest.raises(poptorch.Error, match="are compiled into the program"):
        poptorch.load(path, edit_opts_fn=edit)


def test_an_edited_seed_starts_a_new_stream(path):
    model = poptorch.inferenceModel(Network(), options(1))
    model(X)
    model.save(path)
    expected = poptorch.inferenceModel(Network(), options(8))(X)
    assert torch.equal(poptorch.load(path, edit_opts_fn=lambda o: o.randomSeed(8))(X), expected)


# Files that are not what they should be


def test_a_file_of_another_version_is_refused(path):
    trainer().compileAndExport(path, X, Y)
    content, tensors = read_archive(path)
    content["extra"]["poptorch"] = "2.0.0"
    write_archive(path, content, tensors)
    for load in (poptorch.load, trainer().loadExecutable):
        with pytest.raises(AssertionError, match=r"Invalid file .*PopTorch version mismatch"):
            load(path)


def test_a_file_that_is_missing_is_named(path):
    with pytest.raises(FileNotFoundError, match=r"model\.poptorch"):
        poptorch.load(path)


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.9, 0.999])
def test_a_file_that_is_cut_short_is_refused_in_words(path, fraction):
    trainer().compileAndExport(path, X, Y)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * fraction)])
    with pytest.raises(poptorch.Error, match=r"model\.poptorch is no program of Pilotage, or is cut short"):
        poptorch.load(path)


def test_a_file_whose_content_was_altered_is_refused_in_words(path):
    trainer().compileAndExport(path, X, Y)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    for entry in entries:
        start = entry.header_offset + 30 + len(entry.filename)
        altered = bytearray(data)
        altered[start + entry.file_size // 2] ^= 255
        path.write_bytes(altered)
        with pytest.raises(poptorch.Error, match=r"model\.poptorch is (damaged|no program of Pilotage)"):
            poptorch.load(path)


def test_a_file_of_something_else_is_refused_in_words(path):
    torch.save({"weights": torch.ones(1)}, path)
    with pytest.raises(poptorch.Error, match="is no program of Pilotage"):
        poptorch.load(path)
    path.write_text("text")
    with pytest.raises(poptorch.Error, match="is no program of Pilotage"):
        poptorch.load(path)


def test_what_cannot_be_written_leaves_the_old_file_alone(path):
    trainer().compileAndExport(path, X, Y)
    before = path.read_bytes()

    class Unknown:
        pass

    model = poptorch.inferenceModel(lambda x, what: x + 1, options())
    model.compile(X, Unknown())
    with pytest.raises(poptorch.Error, match="cannot be written to a file"):
        model.save(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.long
def test_a_process_killed_while_it_saves_leaves_the_old_file(path):
    """The file is whole at every moment: kill the saving process at many different ones."""
    program = f"""
        import sys, torch, poptorch
        from torch import nn
        model = poptorch.inferenceModel(nn.Linear(2000, 2000), poptorch.Options().showCompilationProgressBar(False))
        model.compile(torch.ones(1, 2000))
        model.save({str(path)!r})
        print("ready", flush=True)
        while True:
            model.save({str(path)!r})
            print("saved", flush=True)
    """
    for saves in range(5):
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        for _ in range(saves):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert poptorch.load(path)(torch.ones(1, 2000)).shape == (1, 2000)


def test_machine_code_in_a_file_is_used_only_where_it_is_trusted(tmp_path, caplog):
    options = Options().runOn("cpu", tier="compiled").enableExecutableCaching(tmp_path / "own")
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    executor = poptorch.inferenceModel(model, options)
    inputs = torch.randn(3, 4)
    expected = executor(inputs)
    executor.save(tmp_path / "model.poptorch")

    def elsewhere(options):
        options.enableExecutableCaching(tmp_path / "elsewhere")
        options.runOn(tier="graph")

    def trusting(options):
        options.enableExecutableCaching(tmp_path / "trusting")

    with caplog.at_level("WARNING"):
        careful = poptorch.load(tmp_path / "model.poptorch", elsewhere)
    assert any("trusted=True" in record.getMessage() for record in caplog.records)
    assert careful.engine.session.tier is Tier.GRAPH
    assert torch.equal(careful(inputs), model(inputs))

    trusted = poptorch.load(tmp_path / "model.poptorch", trusting, trusted=True)
    # No compiler was needed: the code of the file lies in the other cache now.
    assert trusted.engine.session.tier is Tier.COMPILED
    assert torch.equal(trusted(inputs), expected)
    (entry,) = [path for path in (tmp_path / "trusting").iterdir() if path.is_dir()]
    assert {path.name for path in entry.iterdir()} == {"manifest.json", "infer"}


def test_a_tier_that_the_environment_pins_is_remembered(tmp_path, monkeypatch):
    monkeypatch.setenv("PILOTAGE_TIER", "graph")
    executor = poptorch.inferenceModel(nn.Linear(4, 2), Options().runOn("cpu"))
    executor(torch.randn(3, 4))
    executor.save(tmp_path / "model.poptorch")
    monkeypatch.delenv("PILOTAGE_TIER")
    assert poptorch.load(tmp_path / "model.poptorch").engine.session.choice.rises is False

"""Commands in the folder of a run of the original: years of checkpoints and tables, written by its own trainer."""

import csv

import numpy as np
import pytest
import torch

from cosmictagger.command import main
from cosmictagger.configuration.compose import configuration
from cosmictagger.data.generator.file import generate_file
from cosmictagger.networks.uresnet import UResNet
from cosmictagger.records.original_files import original_names

pytestmark = pytest.mark.slow

SMALL = (
    "network.depth=2",
    "network.n_initial_filters=4",
    "network.bottleneck_deepest=8",
    "network.blocks_deepest_layer=1",
    "network.blocks_per_layer=1",
)
METRICS = ("Total_Accuracy", "Cosmic_IoU", "Neutrino_IoU", "Non_Bkg_Accuracy", "mIoU")
TIMES = ("global_step_per_sec", "images_per_second", "io_fetch_time", "step_time")
JUDGED = ["loss", *(f"{who}/{name}" for who in ("Average", "plane0", "plane1", "plane2") for name in METRICS)]
"""Columns of the original's tables, in its order."""

FOLDERS = {"a21": "A21", "uresnet": "uresnet", "scc21": "scc21", "uresnet3d": "uresnet3d"}
STEPS = 3


class Original:
    """The optimizer and the schedule of the original: their state is that of parameters in its order."""

    def __init__(self, network):
        config = configuration(["run.id=old", f"network={network}", *SMALL])
        torch.manual_seed(0)
        self.network = UResNet(config.network)
        self.optimizer = torch.optim.Adam(self.network.parameters(), 1.0)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: np.float64(1e-4))

    def train(self):
        for parameter in self.network.parameters():
            parameter.grad = torch.zeros_like(parameter)
        for _ in range(STEPS):
            self.optimizer.step()
            self.schedule.step()
        # So large that the two steps that follow hardly change them, and another one for each parameter.
        for number, state in enumerate(self.optimizer.state.values()):
            state["exp_avg"].fill_(1e3 * (number + 1))
            state["exp_avg_sq"].fill_(1e6 * (number + 1) ** 2)

    def write(self, folder, prefix):
        places = folder / "checkpoints"
        places.mkdir(parents=True)
        state = {
            "global_step": STEPS,
            "state_dict": {prefix + name: each for name, each in original_names(self.network.state_dict()).items()},
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.schedule.state_dict(),
        }
        for step in (2, STEPS):
            torch.save({**state, "global_step": step}, places / f"model-{step}.ckpt")
        (places / "checkpoint").write_text(
            f"latest: model-{STEPS}.ckpt\n{STEPS}: model-{STEPS}.ckpt\n2: model-2.ckpt\n"
        )
        for kind, columns in (("train", [*JUDGED, *TIMES]), ("test", JUDGED)):
            rows = [[str(step), *(f"{step + 0.5:.5f}" for _ in columns)] for step in range(STEPS)]
            lines = "".join(",".join(row) + "\n" for row in [["step", *columns], *rows])
            (folder / f"{kind}_metrics.csv").write_text(lines)

    def read(self, path):
        """As the original reads a file: its names in its order, then the state of optimizer and schedule."""
        state = torch.load(path, weights_only=True)
        assert list(state["state_dict"]) == list(original_names(self.network.state_dict()))
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["scheduler"])
        return state


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    generate_file(folder / "light.h5", events=5, seed=1)
    return folder


@pytest.fixture
def run(tmp_path, monkeypatch, events, capsys):
    """Runs a command where the folder `output` of the original lies."""
    monkeypatch.chdir(tmp_path)

    def go(network, *words):
        names = ("data.file=light.h5", "data.aux_file=light.h5", "data.downsample=5", "data.workers=1")
        given = (f"network={network}", *SMALL, f"data.data_directory={events}/", *names, "run.minibatch_size=1")
        code = main(["run.id=old", "framework=torch", "run.saver=false", *given, *words])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        return printed.out

    return go


@pytest.mark.parametrize("prefix", ["", "module."], ids=["one process", "many processes"])
@pytest.mark.parametrize("network", FOLDERS)
def test_a_run_of_the_original_continues_in_its_folder(run, tmp_path, network, prefix):
    original, folder = Original(network), tmp_path / "output" / "torch" / FOLDERS[network] / "old"
    original.train()
    original.write(folder, prefix)
    said = run(network, "mode=train", "run.iterations=2", "run.aux_iterations=4")
    assert f"resumed at step {STEPS}, 2 steps to go" in said

    with (folder / "train_metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["step", *JUDGED, *TIMES, "learning_rate"]
    assert [row["step"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert [row["io_fetch_time"] for row in rows[:STEPS]] == ["0.50000", "1.50000", "2.50000"]
    # Five events, one in a batch: the warm-up goes on where it was.
    assert [float(row["learning_rate"]) for row in rows[STEPS:]] == pytest.approx([2.2e-4, 2.6e-4])
    with (folder / "test_metrics.csv").open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["0", "1", "2", "4"]

    state = original.read(folder / "checkpoints" / "model-5.ckpt")
    assert state["global_step"] == original.schedule.last_epoch == 5
    for number, (name, parameter) in enumerate(original.network.named_parameters()):
        found = original.optimizer.state[parameter]
        assert found["step"] == 5, name
        torch.testing.assert_close(
            found["exp_avg"], torch.full_like(parameter, 0.81e3 * (number + 1)), rtol=1e-2, atol=0.0
        )
    assert (folder / "checkpoints" / "checkpoint").read_text().splitlines() == [
        "latest: model-5.ckpt",
        "5: model-5.ckpt",
        "3: model-3.ckpt",
        "2: model-2.ckpt",
    ]


@pytest.mark.parametrize("network", FOLDERS)
def test_weights_of_the_original_predict(run, tmp_path, network):
    folder = tmp_path / "years" / "of" / "files"
    Original(network).write(folder, "module.")
    said = run(network, "mode=inference", f"mode.weights_location={folder / 'checkpoints'}/")
    assert f"Weights of {folder / 'checkpoints' / f'model-{STEPS}.ckpt'}, step {STEPS}" in said
    assert "Inference report: 5 batches processed for 5 entries." in said
    # `file` is read; the original's commands name in `aux_file` one that need not exist.
    run(network, "mode=inference", "data.aux_file=nowhere.h5", f"mode.weights_location={folder}")

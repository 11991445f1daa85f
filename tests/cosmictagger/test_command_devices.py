"""The same training on a CPU, an IPU (our drop-in) and a Gaudi (our emulation), in one process or two."""

import csv
import json

import pytest

from cosmictagger.command import main

STEPS = 23
"""With two events an epoch is a step: warm-up, plateau and the beginning of the decay."""

WORDS = (
    "run.id=x",
    "network=a21",
    "network.depth=4",
    "data.downsample=3",
    "data.events=2",
    "data.aux_events=2",
    "data.seed=3",
    "data.workers=1",
    "framework.seed=5",
    "run.minibatch_size=2",
    f"run.iterations={STEPS}",
    "run.aux_iterations=10",
    "run.saver=false",
    "mode.optimizer.learning_rate=0.001",
)
SMALL = ("network.n_initial_filters=4", "network.bottleneck_deepest=8", "network.depth=2", "data.downsample=5")
LAUNCHER = {"CPU": "torchrun", "HPU": "mpirun", "IPU": "poprun"}


@pytest.fixture
def trained(tmp_path, few_events, start):
    """Losses and the placement report of a run."""

    def run(place, *words, instances=1, by=None):
        folder = tmp_path / f"{place}{instances}{by}"
        shared = ("run.distributed=true",) if instances > 1 and place != "IPU" else ()
        given = (
            f"run.compute_mode={place}",
            f"output_dir={folder}",
            "data=generated",
            f"data.data_directory={few_events}",
            *shared,
        )
        launcher = by or (LAUNCHER[place] if instances > 1 else "nobody")
        if launcher == "nobody" and place != "HPU":
            assert main([*WORDS, *given, *words]) == 0
        else:
            codes, said = start(*WORDS, *given, *words, by=launcher, instances=instances).finish()
            assert not any(codes), said
        tables = [_losses(folder / f"{kind}_metrics.csv") for kind in ("train", "test")]
        return *tables, json.loads((folder / "report.json").read_text())["placement"]

    return run


def _losses(path):
    if not path.is_file():
        return []
    with path.open() as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


@pytest.mark.slow
def test_an_ipu_and_a_gaudi_give_the_losses_of_a_cpu(trained):
    words = ("run.iterations=5", "run.aux_iterations=3")
    train, test, placement = trained("CPU", *words)
    assert placement["device"] == "cpu"
    for place, device, compiled in (("IPU", "cpu", True), ("HPU", "hpu:0 (Gaudi, emulated on the CPU)", False)):
        found, held_out, placement = trained(place, *words)
        assert found == pytest.approx(train, rel=1e-3)
        assert held_out == pytest.approx(test, rel=1e-3)
        assert (placement["device"], placement["compiled"], placement["problems"]) == (device, compiled, [])
        assert placement["updates"] == 5


@pytest.mark.slow
def test_inference_on_an_ipu_equals_that_on_a_cpu(tmp_path, few_events):
    given = (
        *WORDS,
        *SMALL,
        f"output_dir={tmp_path}",
        "data=generated",
        f"data.data_directory={few_events}",
        "run.iterations=2",
    )
    assert main([*given]) == 0
    found = []
    for place in ("CPU", "IPU"):
        words = [word for word in given if not word.startswith(("run.saver", "mode.", "run.aux"))]
        assert main([*words, "mode=inference", f"run.compute_mode={place}"]) == 0
        found.append(json.loads((tmp_path / "inference" / "report.json").read_text())["metrics"])
    assert found[1] == pytest.approx(found[0], rel=1e-5)


@pytest.mark.timeout(1500)
@pytest.mark.long
@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
@pytest.mark.parametrize("instances", [1, 2])
def test_every_device_gives_the_same_losses(trained, optimizer, instances):
    words = (f"mode.optimizer.name={optimizer}",)
    train, _, placement = trained("CPU", *words, instances=instances)
    assert placement["instances"] == instances
    for place in ("IPU", "HPU"):
        found, _, placement = trained(place, *words, instances=instances)
        assert found == pytest.approx(train, rel=1e-3), place
        assert placement["instances"] == instances
        if instances > 1:
            assert "weights equal everywhere after step 1" in placement["exchange"]


@pytest.mark.timeout(1500)
@pytest.mark.long
@pytest.mark.parametrize("stages", [2, 4])
def test_stages_do_not_change_losses(trained, stages):
    train, _, _ = trained("IPU", "run.iterations=5")
    split, _, _ = trained("IPU", "run.iterations=5", f"run.stages={stages}", by="nobody")
    assert split == pytest.approx(train, rel=1e-5)


@pytest.mark.timeout(1500)
@pytest.mark.long
def test_every_launcher_is_supported(trained):
    found = [trained("CPU", *SMALL, instances=2, by=by)[0] for by in ("torchrun", "mpirun", "srun", "poprun")]
    assert all(each == found[0] for each in found[1:])


@pytest.mark.timeout(1500)
@pytest.mark.long
def test_eight_gaudis_share_one_update(trained, tmp_path):
    words = ("data.events=8", "data.aux_events=8", "run.minibatch_size=8", "run.iterations=3", "run.lazy_mode=true")
    found, _, placement = trained("HPU", *SMALL, *words, instances=8)
    expected, _, _ = trained("CPU", *SMALL, *words[:-1], instances=8)
    assert found == pytest.approx(expected, rel=1e-3)
    assert (placement["instances"], placement["device"]) == (8, "hpu:0 (Gaudi, emulated on the CPU)")
    assert placement["exchange"].startswith("mean over 8 replicas by hccl")


@pytest.mark.timeout(1500)
@pytest.mark.long
def test_two_instances_with_two_replicas_each_are_four_processes(trained):
    words = ("data.events=4", "data.aux_events=4", "run.minibatch_size=4", "run.iterations=6", *SMALL)
    expected, _, _ = trained("CPU", *words, instances=4)
    found, _, placement = trained("IPU", *words, instances=2, by="poprun with pairs")
    assert (placement["instances"], placement["replicas"]) == (2, 2)
    assert placement["exchange"].startswith("mean over 4 replicas by popdist")
    assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.timeout(1500)
@pytest.mark.long
def test_lazy_graphs_end_only_after_backward_and_update(start, tmp_path, few_events):
    given = (
        *WORDS,
        *SMALL,
        f"output_dir={tmp_path}",
        "data=generated",
        f"data.data_directory={few_events}",
        "run.iterations=4",
    )
    codes, said = start(*given, "run.compute_mode=HPU", "run.lazy_mode=true").finish()
    assert codes == [0], said
    assert "Lazy mode would have run 8 graphs" in said
    assert "0 cut by reading a value, 0 idle marks" in said

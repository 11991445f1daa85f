"""Commands of the published ports and of our own pages, with only sizes and data paths changed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from cosmictagger.command import main
from cosmictagger.data.generator.file import generate_file

ROOT = Path(__file__).parents[2]
SIZES = {
    "network.depth": "1",
    "network.n_initial_filters": "2",
    "network.bottleneck_deepest": "4",
    "network.blocks_deepest_layer": "1",
    "data.downsample": "6",
    "data.workers": "1",
    "run.iterations": "2",
    "run.saver": "false",
}
"""Small enough for any machine; the rest of a command stays."""

GRAPHCORE = (
    "{words} mode=train run.id=bfloat16_2x10_1 run.distributed=False data.data_directory={data} framework=torch "
    "run.compute_mode={device} run.minibatch_size={batch} run.iterations=10 run.precision=3"
)
A21 = (
    "--config-name=a21 mode=train run.id=01 run.distributed={distributed} data=real data.data_directory={data} "
    "framework=torch run.compute_mode={device} run.precision={precision}"
)
POPRUN = (
    "poprun -vv --num-instances={n} --num-replicas={n} --executable-cache-path=$PYTORCH_CACHE_DIR python bin/exec.py "
)
MPIRUN = (
    "mpirun -n 2 --bind-to core --map-by slot:PE=1 --rank-by core --report-bindings --allow-run-as-root "
    "--oversubscribe python bin/exec.py "
)
OTHER_HOSTS = (
    "mpirun -v --allow-run-as-root --bind-to core --rank-by core --report-bindings --map-by ppr:2:socket:PE=1 -np 2 "
    "--mca btl_tcp_if_include lo --merge-stderr-to-stdout --prefix $MPI_ROOT -H localhost:2 -x GC_KERNEL_PATH "
    "-x MASTER_ADDR -x MASTER_PORT -x HCCL_SOCKET_IFNAME=lo -x HCCL_OVER_TCP=1 -x LOG_LEVEL_ALL=3 python bin/exec.py "
)
OF_HABANA = {
    "PT_HPU_ENABLE_SYNAPSE_LAYOUT_HANDLING": "false",
    "GC_KERNEL_PATH": "/usr/lib/habanalabs/libtpc_kernels.so",
}
"""Variables that the published scripts export; without a card they mean nothing."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Files with the names of the published data set."""
    folder = tmp_path_factory.mktemp("events")
    for name in ("cosmic_tagging_train", "cosmic_tagging_test", "cosmic_tagging_light", "A", "B"):
        if name == "cosmic_tagging_train":
            first = generate_file(folder / f"{name}.h5", events=8, seed=1)
        else:
            shutil.copy(first, folder / f"{name}.h5")
    return folder


@pytest.fixture
def launch(tmp_path, data):
    """Runs a command line in an empty folder."""

    def run(command, **places):
        words = shlex.split(os.path.expandvars(small(command.format(data=data, **places))))
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        if words[0] != "torchrun" and shutil.which(words[0], path=path) is None:
            pytest.skip(f"there is no {words[0]} here")
        variables = {"PYTORCH_CACHE_DIR": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"}
        words = [word.replace("$PYTORCH_CACHE_DIR", str(tmp_path / "cache")) for word in words]
        words = [str(ROOT / word) if word == "bin/exec.py" else word for word in words]
        # An environment that borrows its torch has no torchrun; another one's would run another Python.
        words = [
            *((sys.executable, "-m", "torch.distributed.run") if words[0] == "torchrun" else words[:1]),
            *words[1:],
        ]
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        known = os.environ | variables | root | {"PATH": path, "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        ran = subprocess.run(words, capture_output=True, text=True, env=known, cwd=tmp_path, timeout=280)
        assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
        return ran.stdout + ran.stderr

    return run


def small(command):
    """The command with small sizes in place of its own."""
    kept = [word for word in command.split(" ") if word.partition("=")[0] not in SIZES]
    return " ".join([*kept, *(f"{name}={value}" for name, value in SIZES.items())])


def placement(folder, network):
    report = json.loads((folder / "output" / "torch" / network / "report.json").read_text())
    assert report["global_step"] == 2
    return report["placement"]


# Section "Graphcore": one process, and poprun with one instance for each replica


@pytest.mark.long
@pytest.mark.parametrize(("device", "batch"), [("IPU", 2), ("CPU", 1)])
def test_a_single_process_of_the_graphcore_port(launch, tmp_path, device, batch):
    launch(GRAPHCORE, words="python bin/exec.py", device=device, batch=batch)
    found = placement(tmp_path, "uresnet/bfloat16_2x10_1")
    assert found["precision"].startswith("float16 activations")
    assert found["problems"] == []


@pytest.mark.slow
def test_two_instances_in_float16_keep_equal_weights(launch, tmp_path):
    launch(POPRUN.format(n=2) + A21, device="IPU", distributed="False", precision=3)
    found = placement(tmp_path, "A21/01")
    assert found["precision"] == "float16 activations, float16 weights"
    assert found["exchange"] == "mean over 2 replicas by popdist; weights equal everywhere after step 1, 2"


@pytest.mark.long
@pytest.mark.parametrize("instances", [1, 4])
def test_other_numbers_of_instances_of_the_graphcore_port(launch, tmp_path, instances):
    launch(POPRUN.format(n=instances) + A21, device="IPU", distributed="False", precision=3)
    assert placement(tmp_path, "A21/01")["instances"] == instances


@pytest.mark.long
def test_the_graphcore_port_for_several_instances(launch, tmp_path):
    launch(GRAPHCORE, words=POPRUN.format(n=4), device="IPU", batch=2)
    found = placement(tmp_path, "uresnet/bfloat16_2x10_1")
    assert found["instances"] == 4
    assert found["exchange"].startswith("mean over 4 replicas by popdist; weights equal everywhere")


# Section "Habana": one card, five runs at once, and mpirun


@pytest.mark.long
@pytest.mark.parametrize("device", ["HPU", "CPU"])
def test_a_single_process_of_the_habana_port(launch, tmp_path, device):
    launch("python bin/exec.py " + A21 + " hydra/job_logging=disabled", device=device, distributed="False", precision=3)
    assert placement(tmp_path, "A21/01")["precision"] == "float16 activations, float32 weights, loss scaling"


@pytest.mark.long
def test_the_habana_port_on_the_light_file(launch, tmp_path):
    launch(
        "python bin/exec.py mode=train run.id=200 framework=torch run.compute_mode=HPU run.distributed=False "
        "data.data_directory={data} data.file=cosmic_tagging_light.h5 data.aux_file=cosmic_tagging_light.h5"
    )
    assert placement(tmp_path, "uresnet/200")["device"] == "hpu:0 (Gaudi, emulated on the CPU)"


def for_this_mpirun(command):
    """Open MPI 5 no longer knows ``--rank-by core``."""
    if shutil.which("mpirun") is None:
        pytest.skip("there is no mpirun here")
    said = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    return command if re.search(r"Open MPI\) [1-4]\.", said) else command.replace("--rank-by core ", "")


@pytest.mark.slow
def test_cards_under_mpirun_that_share_a_network_end_without_warnings(launch, tmp_path):
    said = launch(for_this_mpirun(MPIRUN) + A21, device="HPU", distributed="True", precision=3)
    found = placement(tmp_path, "A21/01")
    assert found["exchange"] == "mean over 2 replicas by hccl; weights equal everywhere after step 1, 2"
    assert "hooks" not in said
    assert "Time stats" not in said


@pytest.mark.long
def test_cards_under_mpirun_that_train_for_themselves(launch, tmp_path):
    said = launch(for_this_mpirun(MPIRUN) + A21, device="HPU", distributed="False", precision=3)
    assert said.count("each of them works independently") == 2
    assert placement(tmp_path, "A21/01")["instances"] == 1
    assert placement(tmp_path, "A21/01/process_1")["instances"] == 1


@pytest.mark.long
@pytest.mark.parametrize("precision", [0, 2])
def test_other_precisions_and_hosts_of_the_habana_ports(launch, tmp_path, precision, monkeypatch, free_port):
    command = for_this_mpirun(OTHER_HOSTS)
    root = str(Path(shutil.which("mpirun")).parents[1])
    for name, value in (
        {"MASTER_PORT": str(free_port), "MPI_ROOT": root, "HABANA_LOGS": str(tmp_path)} | OF_HABANA
    ).items():
        monkeypatch.setenv(name, value)
    launch(command + A21, device="HPU", distributed="True", precision=precision)
    assert placement(tmp_path, "A21/01")["instances"] == 2


@pytest.mark.long
@pytest.mark.timeout(900)
def test_five_runs_at_once_of_the_habana_port(launch, tmp_path):
    command = GRAPHCORE.replace("bfloat16_2x10_1", "{run}").replace("run.precision=3", "run.precision=2")

    def run(number):
        return launch(command, words="python bin/exec.py", device="HPU", batch=2, run=f"at_once_{number}")

    with ThreadPoolExecutor(5) as runs:
        list(runs.map(run, range(5)))
    for number in range(5):
        assert placement(tmp_path, f"uresnet/at_once_{number}")["precision"] == "bfloat16 activations, float32 weights"


# Our own pages


def commands_of(page):
    """The commands in a page's code blocks, with continued lines joined, and the commands in its tables."""
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    shell = [block.replace("\\\n", " ") for language, block in blocks if language in ("", "bash", "sh")]
    lines = [line.partition("  #")[0].strip() for block in shell for line in block.split("\n")]
    lines += re.findall(r"`((?:srun|torchrun|mpirun|mpiexec|poprun) [^`\n]*cosmictagger[^`\n]*)`", text)
    lines += re.findall(r"`((?:srun|torchrun|mpirun|mpiexec|poprun) [^`\n]*exec\.py[^`\n]*)`", text)
    wanted = ("cosmictagger ", "python bin/exec.py ", "mpirun ", "poprun ", "srun ", "torchrun ", "mpiexec ")
    return [line for line in lines if line.startswith(wanted)]


PAGES = (
    "cosmictagger.md",
    "cosmictagger-events.md",
    "cosmictagger-gaudi.md",
    "cosmictagger-graphcore.md",
    "cosmictagger-popdist.md",
    "cosmictagger-slurm.md",
    "cosmictagger-tensorflow.md",
    "start/physics.md",
)
COMMANDS = [(page, command) for page in PAGES for command in commands_of(page)]


def test_the_pages_have_commands():
    counts = {page: len(commands_of(page)) for page in PAGES}
    assert list(counts.values()) == [7, 0, 4, 2, 1, 6, 9, 2], counts


def resized(command, data):
    """A page's command with small sizes, few processes on one host, and the test's data."""
    words = command.replace("…", "mode=train run.id=many network=a21 data=synthetic run.minibatch_size=2")
    words = re.sub(r"data\.data_directory=\S+", f"data.data_directory={data}", words.replace("DIR/", f"{data}/"))
    words = re.sub(r"data\.(aux_)?events=\d+", lambda found: f"data.{found[1] or ''}events=4", words)
    for pattern, value in (
        (r"(mpirun|mpiexec) -n \d+", r"\1 -n 2"),
        (r"-ppn \d+", ""),
        (r"PE=\d+", "PE=1"),
        (r"--bind-to core --map-by \S+", "--bind-to none"),
        (r"--nnodes \d+ --nproc-per-node \d+ --rdzv-endpoint \S+", "--nproc-per-node 2 --master-port {port}"),
        (r"--nproc-per-node 8", "--nproc-per-node 2"),
        (r"--nodes \d+ --ntasks-per-node \d+ --gpus-per-task \d+", "--ntasks 2"),
        (r"--host \S+ --num-instances \d+", "--num-instances=2 --num-replicas=2"),
        (r"MASTER_ADDR=\S+", "MASTER_ADDR=127.0.0.1"),
        (r"MASTER_PORT=\d+", "MASTER_PORT={port}"),
        (r"run\.minibatch_size=\d+", "run.minibatch_size=4"),
        (r"\$SLURM_JOB_NAME", "job"),
    ):
        words = re.sub(pattern, value, words)
    return words


def needs(command):
    """What a command needs that not every machine has; None if it runs everywhere."""
    kind = command.split()[0]
    if kind in ("srun", "mpiexec", "mpirun"):
        return kind
    return "card" if "compute_mode=GPU" in command else None


ELSEWHERE = [(page, command) for page, command in COMMANDS if needs(command) is not None]
FIRST_IN_TORCH = "cosmictagger mode=train run.id=first network=a21 framework=torch"


@pytest.mark.long
@pytest.mark.parametrize(("page", "command"), ELSEWHERE)
def test_a_command_runs_where_its_launcher_and_its_card_are(page, command, launch, data, monkeypatch, free_port):
    if "compute_mode=GPU" in command and not torch.cuda.is_available():
        pytest.skip("there is no card here")
    if needs(command) != "card" and shutil.which(needs(command)) is None:
        pytest.skip(f"there is no {needs(command)} here")
    monkeypatch.setenv("MASTER_PORT", str(free_port))
    words = resized(command, data).replace("{port}", str(free_port))
    words = words.replace("mpirun", "mpirun --oversubscribe --allow-run-as-root", 1)
    launch(words.replace("{", "{{").replace("}", "}}"))


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", sorted({page for page, _ in COMMANDS}))
def test_the_commands_of_a_page_run_in_their_order(page, launch, data, tmp_path, monkeypatch, capsys, free_port):
    commands = [command for command in commands_of(page) if needs(command) is None]
    if page == "cosmictagger-tensorflow.md":
        pytest.importorskip("tensorflow", reason="make test-tensorflow runs this")
        commands.insert(0, FIRST_IN_TORCH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASTER_PORT", str(free_port))
    for command in commands:
        words = resized(command, data).replace("{port}", str(free_port))
        kind = words.split()[0]
        if kind in ("cosmictagger", "python") and "compute_mode=HPU" not in words:
            given = shlex.split(small(words))[1 if kind == "cosmictagger" else 2 :]
            assert main(without_sizes_of_other_modes(given)) == 0, capsys.readouterr().err
        else:
            launch(words.replace("{", "{{").replace("}", "}}"))


def without_sizes_of_other_modes(words):
    """Only training counts a number of iterations this small: the other modes read all events."""
    return [word for word in words if not (word == "run.iterations=2" and "mode=visualize" in words)]

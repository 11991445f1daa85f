from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pilotage.monitoring.processor import Processor


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_name_memory_clock_and_temperature_are_read(tmp_path):
    tree(
        tmp_path,
        proc__cpuinfo="model name\t: Swift 9000\ncpu MHz\t\t: 2000.0\n\n"
        "model name\t: Swift 9000\ncpu MHz\t\t: 3000.0\n",
        proc__meminfo="MemTotal: 1000 kB\nMemAvailable: 250 kB\n",
        sys__class__hwmon__hwmon0__name="nvme\n",
        sys__class__hwmon__hwmon0__temp1_input="99000\n",
        sys__class__hwmon__hwmon1__name="coretemp\n",
        sys__class__hwmon__hwmon1__temp1_input="51000\n",
        sys__class__hwmon__hwmon1__temp2_input="53500\n",
    )
    device = Processor(tmp_path, interval=0.0).read()
    assert (device.id, device.maker) == ("cpu", "CPU")
    assert device.name.startswith("Swift 9000, ")
    assert (device.memory_used, device.memory_total) == (750 * 1024, 1000 * 1024)
    assert (device.clock, device.temperature, device.power) == (2500.0, 53.5, None)


def test_the_load_is_measured_since_the_last_reading(tmp_path):
    tree(tmp_path, proc__stat="cpu  10 0 10 80 0 0 0 0 0 0\n")
    processor = Processor(tmp_path, interval=0.0)
    assert processor.read().utilisation is None
    tree(tmp_path, proc__stat="cpu  30 0 20 140 10 0 0 0 0 0\n")
    assert processor.read().utilisation == 0.3
    tree(tmp_path, proc__stat="cpu  40 0 20 140 10 0 0 0 0 0\n")
    assert processor.read().utilisation == 1.0


@given(st.text(max_size=60), st.text(max_size=60))
def test_strange_kernel_files_cause_no_error(tmp_path_factory, cpuinfo, stat):
    root = tree(tmp_path_factory.mktemp("root"), proc__cpuinfo=f"cpu MHz: {cpuinfo}", proc__stat=f"cpu {stat}")
    processor = Processor(root, interval=0.0)
    processor.read()
    assert processor.read().memory_total is None


def test_this_machine_is_described():
    device = Processor().read()
    assert device.name
    assert 0 < device.memory_used < device.memory_total
    assert device.utilisation is None or 0.0 <= device.utilisation <= 1.0
    assert device.pids == frozenset()

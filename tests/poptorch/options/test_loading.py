import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from poptorch.enums import CommGroupType, ConnectionType, OutputMode, ReductionType
from poptorch.options import (
    ConfigFileError,
    Options,
    PipelinedExecution,
    ShardedExecution,
    Stage,
    TensorLocationSettings,
)


@pytest.mark.parametrize(
    ("entry", "direct"),
    [
        ({"deviceIterations": 4}, lambda options: options.deviceIterations(4)),
        ({"Precision.enableFloatingPointExceptions": True}, lambda o: o.Precision.enableFloatingPointExceptions(True)),
        ({"_Popart.set": ["key", 3]}, lambda options: options._Popart.set("key", 3)),
        ({"_Popart.set": ["key", {"a": [1]}]}, lambda options: options._Popart.set("key", {"a": [1]})),
        ({"connectionType": "ConnectionType.OnDemand"}, lambda o: o.connectionType(ConnectionType.OnDemand)),
        ({"connectionType": "poptorch.ConnectionType.Never"}, lambda o: o.connectionType(ConnectionType.Never)),
        ({"outputMode": ["OutputMode.EveryN", 2]}, lambda options: options.outputMode(OutputMode.EveryN, 2)),
        ({"logDir": "ConnectionType.txt"}, lambda options: options.logDir("ConnectionType.txt")),
        ({"logDir": "./a.b.c"}, lambda options: options.logDir("./a.b.c")),
        ({"updatableNamedBuffers": [["a", "b"]]}, lambda options: options.updatableNamedBuffers(["a", "b"])),
        ({"setAvailableMemoryProportion": {"IPU1": 0.5}}, lambda o: o.setAvailableMemoryProportion({"IPU1": 0.5})),
        ({"disableModuleNamescope": []}, lambda options: options.disableModuleNamescope()),
        ({"enableExecutableCaching": None}, lambda options: options.enableExecutableCaching(None)),
        ({"Precision.setPartialsType": "torch.half"}, lambda options: options.Precision.setPartialsType(torch.half)),
        (
            {"replicationFactor": 4, "inputReplicaGrouping": [2, "CommGroupType.Orthogonal"]},
            lambda o: o.replicationFactor(4).inputReplicaGrouping(2, CommGroupType.Orthogonal),
        ),
        (
            {"Training.accumulationAndReplicationReductionType": "ReductionType.Sum"},
            lambda options: options.Training.accumulationAndReplicationReductionType(ReductionType.Sum),
        ),
    ],
)
def test_json_is_equivalent_to_calls(entry, direct):
    expected = Options()
    direct(expected)
    assert repr(Options().from_json(json.dumps(entry))) == repr(expected)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "deviceIterations": st.integers(1, 100),
            "replicationFactor": st.integers(1, 100),
            "Training.gradientAccumulation": st.integers(1, 100),
            "modelName": st.text(max_size=5).filter(lambda text: not text.startswith(("poptorch.", "torch."))),
            "useIpuModel": st.booleans(),
            "Distributed.configureProcessId": st.tuples(st.integers(), st.integers()),
        },
    )
)
def test_options_survive_json(entries):
    options = Options().from_json(json.dumps(entries))
    expected = Options()
    for path, value in entries.items():
        group, _, method = path.rpartition(".")
        target = getattr(expected, group) if group else expected
        getattr(target, method)(*(value if isinstance(value, tuple) else (value,)))
    assert repr(options) == repr(expected)


def test_a_name_that_occurs_twice_is_called_twice():
    options = Options().from_json('{"_Popart.set": ["a", 1], "_Popart.set": ["b", 2]}')
    assert (options._Popart.options["a"], options._Popart.options["b"]) == (1, 2)


@pytest.mark.parametrize("path", ["nonsense", "Training.nonsense", "_values.update", "__class__", "Training.__init__"])
def test_json_can_only_call_options(path):
    with pytest.raises(AttributeError, match="Invalid attribute") as caught:
        Options().from_json(json.dumps({path: 1}))
    assert caught.value.__notes__ == [f"From the JSON option {path!r}."]


def test_json_cannot_call_a_value():
    with pytest.raises(AttributeError, match="is a value and not an option call"):
        Options().from_json('{"device_iterations": 4}')


@pytest.mark.parametrize("text", ["[]", "3", '"deviceIterations"'])
def test_json_has_to_be_an_object(text):
    with pytest.raises(ValueError, match="must be an object"):
        Options().from_json(text)


def test_invalid_json_raises_a_json_error():
    with pytest.raises(json.JSONDecodeError):
        Options().from_json("{")


def load(tmp_path, text, options=None):
    file = tmp_path / "options.conf"
    file.write_text(text)
    return (options or Options()).loadFromFile(str(file))


def test_each_line_of_a_file_is_a_call(tmp_path):
    options = load(
        tmp_path,
        """
        # Comments and empty lines are skipped.
        deviceIterations(4)   # so are comments at the end

        Training.gradientAccumulation(8)
        outputMode(poptorch.OutputMode.EveryN, output_return_period=2)
        replicationFactor(2).modelName("net # 1")
        Precision.setPartialsType(torch.float16)
        _Popart.set("dotChecks", ["FINAL", ("a", -1, 0.5, None, {"x": True, "y": {1}})])
        setExecutionStrategy(poptorch.ShardedExecution(poptorch.Stage("a").ipu(1), ["b"]))
        TensorLocations.setWeightLocation(poptorch.TensorLocationSettings().useOnChipStorage(False))
        anchorTensor("short", "long")
        """,
    )
    expected = Options().deviceIterations(4).outputMode(OutputMode.EveryN, 2).replicationFactor(2).modelName("net # 1")
    expected.Training.gradientAccumulation(8)
    expected.Precision.setPartialsType(torch.half)
    expected._Popart.set("dotChecks", ["FINAL", ("a", -1, 0.5, None, {"x": True, "y": {1}})])
    expected.setExecutionStrategy(ShardedExecution(Stage("a").ipu(1), ["b"]))
    expected.TensorLocations.setWeightLocation(TensorLocationSettings().useOnChipStorage(False))
    expected.anchorTensor("short", "long")
    assert repr(options) == repr(expected)


def test_options_of_several_files_are_combined(tmp_path):
    options = load(tmp_path, "deviceIterations(4)")
    load(tmp_path, "replicationFactor(2)", options)
    load(tmp_path, "", options)
    assert (options.device_iterations, options.replication_factor) == (4, 2)


def test_a_path_can_be_an_object(tmp_path):
    (tmp_path / "x").write_text("deviceIterations(3)")
    assert Options().loadFromFile(tmp_path / "x").device_iterations == 3


def test_an_invalid_line_is_shown(tmp_path):
    with pytest.raises(ConfigFileError) as caught:
        load(tmp_path, "# a comment\n\nreplicationFactor(2)\n  deviceIterations(4))\n")
    assert str(caught.value) == ("SyntaxError at line 2 of options.conf: unmatched ')'\n> options.deviceIterations(4))")
    assert isinstance(caught.value.__cause__, SyntaxError)


REFUSED = [
    "deviceIterations(int('4'))",
    "deviceIterations(2 + 2)",
    "deviceIterations(n)",
    "deviceIterations(*[4])",
    "deviceIterations(**{'device_iterations': 4})",
    "deviceIterations(options)",
    "deviceIterations(options.device_iterations)",
    "deviceIterations(__import__('os').getpid())",
    "deviceIterations([4 for _ in 'a'][0])",
    "deviceIterations(lambda: 4)",
    "deviceIterations(f'{4}')",
    "deviceIterations(b'4')",
    "deviceIterations(poptorch.Options())",
    "deviceIterations(poptorch.OutputMode)",
    "deviceIterations(poptorch.OutputMode.Nonsense)",
    "deviceIterations(poptorch.Stage('a').blocks)",
    "deviceIterations(poptorch.Stage('a').__init__('b'))",
    "deviceIterations(poptorch.Stage('a').blocks('b'))",
    "deviceIterations(poptorch.TensorLocationSettings().toDict().clear())",
    "deviceIterations(torch.load)",
    "deviceIterations({**{}})",
    "deviceIterations({[4]})",
    "deviceIterations(poptorch.Stage(block='a'))",
    "device_iterations = 4",
    "device_iterations",
    "deviceIterations(4); replicationFactor(2)",
    "deviceIterations(4) or 3",
    "deviceIterations(4)[0].clone()",
    "deviceIterations(n := 4)",
]


@pytest.mark.parametrize("line", REFUSED)
def test_a_line_is_parsed_and_not_executed(line, tmp_path):
    options = Options()
    before = repr(options)
    with pytest.raises(ConfigFileError, match=r"^Refused at line 2 of options.conf: ") as caught:
        load(tmp_path, f"replicationFactor(2)\n{line}\n", options)
    assert str(caught.value).endswith(f"\n> options.{line}")
    assert repr(options) == before


@pytest.mark.parametrize(
    "line", ["__init__()", "_freeze()", "clone().__class__()", "toDict.__call__()", "toDict().clear()"]
)
def test_a_file_can_only_reach_options(line, tmp_path):
    with pytest.raises(AttributeError, match="Invalid attribute"):
        load(tmp_path, f"outputMode(poptorch.OutputMode.All)\n{line}")


def test_an_error_of_an_option_says_where_it_was_written(tmp_path):
    with pytest.raises(AssertionError, match="deviceIterations") as caught:
        load(tmp_path, "replicationFactor(2)\ndeviceIterations('4')")
    assert caught.value.__notes__ == ["at line 2 of options.conf: options.deviceIterations('4')"]


def test_an_error_of_a_value_says_where_it_was_written(tmp_path):
    with pytest.raises(AssertionError, match="Block ids must be strings") as caught:
        load(tmp_path, "setExecutionStrategy(poptorch.PipelinedExecution(poptorch.Stage(1)))")
    assert "at line 1 of options.conf" in caught.value.__notes__[0]


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Options().loadFromFile(tmp_path / "nowhere")


def test_a_file_can_name_the_default_strategy(tmp_path):
    options = load(tmp_path, "setExecutionStrategy(poptorch.PipelinedExecution(poptorch.AutoStage.AutoIncrement))")
    assert type(options._execution_strategy) is PipelinedExecution
    assert "AutoIncrement" in repr(options)

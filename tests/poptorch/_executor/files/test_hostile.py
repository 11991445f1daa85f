"""Files that were written to run code, to reach other files, or to fill the memory."""

from __future__ import annotations

import pathlib

import pytest
import torch
from torch import nn

import poptorch
from pilotage.storage.archive import read_archive, write_archive

pytestmark = pytest.mark.slow

TOUCH = "__import__('pathlib').Path('MARKER').touch()"
NAMES = [
    f"x={TOUCH}",
    f"x): {TOUCH}\ndef other(y",
    f"x = None\n    {TOUCH}\n    y",
    f"x\n{TOUCH}\n#",
    f"x: {TOUCH}",
]


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return (torch.zeros_like(self.layer(x)) + torch.tensor([1.0, 2.0]),)


@pytest.fixture
def content(path, tmp_path, monkeypatch):
    """The content of the file of a small program; code that runs would create MARKER in the folder."""
    monkeypatch.chdir(tmp_path)
    model = poptorch.inferenceModel(Small(), poptorch.Options().runOn("cpu", tier="graph"))
    model.compileAndExport(path, torch.ones(1, 3))
    return read_archive(path)


@pytest.fixture
def load(path, content):
    """Load the file after a change to its content."""

    def changed(**settings):
        write_archive(path, *content)
        try:
            return poptorch.load(path, **settings)(torch.ones(1, 3))
        finally:
            assert not pathlib.Path("MARKER").exists(), "The file has run code."

    return changed


def nodes_of(content):
    return content[0]["program"]["computations"]["infer"]["nodes"]


def call_in(content, name="add"):
    return next(node for node in nodes_of(content) if node["target"].startswith(f"aten::{name}."))


def test_an_unmodified_file_loads(load):
    assert load()[0].tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("name", NAMES)
def test_the_names_of_keywords_run_nothing(name, content, load):
    call_in(content, "zeros_like")["kwargs"]["dict"][name] = False
    with pytest.raises(poptorch.Error, match="as a keyword of aten::zeros_like"):
        load()


@pytest.mark.parametrize("name", NAMES)
def test_the_targets_of_placeholders_run_nothing(name, content, load):
    nodes_of(content)[0]["target"] = name
    # The target says nothing that the name does not.
    assert load()[0].tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("name", [*NAMES, "class", "__import__", "é", "", None, 3])
def test_the_names_of_nodes_run_nothing(name, content, load):
    for node in (nodes_of(content)[0], call_in(content)):
        kept, node["name"] = node["name"], name
        with pytest.raises(poptorch.Error, match="as the name of a node"):
            load()
        node["name"] = kept


@pytest.mark.parametrize("name", [*NAMES, "forward", "__class__", "layer.weight", "_code"])
def test_the_names_of_constants_run_nothing(name, content, load):
    (node,) = [node for node in nodes_of(content) if node["op"] == "get_attr"]
    kept, node["target"] = node["target"], name
    with pytest.raises(poptorch.Error, match="as a node"):
        load()
    content[0]["program"]["computations"]["infer"]["constants"] = [name]
    content[1][f"constant/infer/{name}"] = content[1].pop(f"constant/infer/{kept}")
    with pytest.raises(poptorch.Error, match="Expected"):
        load()


@pytest.mark.parametrize("line", [f"x\n{TOUCH}", f"x\r{TOUCH}", f"x\u2028{TOUCH}", 3])
def test_lines_of_source_run_nothing(line, content, load):
    for node in nodes_of(content):
        node["line"] = line
    assert load()[0].tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("key", ["labels", "scope", "stage", "args", "kwargs", "op", "target", "other"])
@pytest.mark.parametrize("value", [f"x\n{TOUCH}", [f"\n{TOUCH}"], {"tuple": [TOUCH]}, -1])
def test_no_entry_of_a_node_runs_code(key, value, content, load):
    call_in(content)[key] = value
    with pytest.raises(poptorch.Error, match="modified or is damaged"):
        load()


@pytest.mark.parametrize("parameter", [[NAMES[0], "POSITIONAL_OR_KEYWORD", False, None], ["x", TOUCH, False, None]])
def test_parameters_of_forward_run_nothing(parameter, content, load):
    content[0]["signature"] = [parameter]
    with pytest.raises(poptorch.Error, match="signature"):
        load()


@pytest.mark.parametrize("name", ["os:system", "builtins:exec", "subprocess:Popen", f"{TOUCH}:x", "torch.hub:load"])
def test_classes_of_outputs_run_nothing(name, content, load):
    content[0]["program"]["outputs"]["sequence"][0] = name
    assert type(load()) is tuple


def test_a_class_with_its_own_constructor_is_created_only_if_the_file_is_trusted(content, load, monkeypatch):
    class Loud(list):
        made = 0

        def __init__(self, items):
            super().__init__(items)
            Loud.made += 1

    monkeypatch.setattr(pathlib, "Loud", Loud, raising=False)
    content[0]["program"]["outputs"]["sequence"][0] = "pathlib:Loud"
    assert (type(load()), Loud.made) == (list, 0)
    assert (type(load(trusted=True)), Loud.made) == (Loud, 1)


def test_a_file_cannot_read_or_overwrite_another(tmp_path, content, load):
    other = tmp_path / "other"
    other.write_bytes(b"01234567")
    node = call_in(content)
    node["target"], node["kwargs"] = "aten::from_file.default", {"dict": {}}
    node["args"] = {"tuple": [str(other), True, 2]}
    with pytest.raises(
        poptorch.Error, match=r"aten::from_file, which a file may not do by default: it reads and writes files"
    ):
        load()
    assert other.read_bytes() == b"01234567"


@pytest.mark.parametrize(
    "operation",
    [
        "aten::save.default",
        "aten::set_.source_Tensor",
        "aten::resize_.default",
        "aten::_reshape_alias.default",
        "prim::rpc_async.x",
    ],
)
def test_operations_that_are_not_on_the_list_are_refused(operation, content, load):
    call_in(content)["target"] = operation
    with pytest.raises(poptorch.Error, match=r"may not do by default|does not have"):
        load()


def test_an_operation_of_the_users_own_is_allowed_by_name(path, content, load):
    with torch.library._scoped_library("hostile_test", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        node = call_in(content)
        node["target"], node["args"] = "hostile_test::twice.default", {"tuple": node["args"]["tuple"][:1]}
        node["kwargs"] = {"dict": {}}
        with pytest.raises(poptorch.Error, match=r'allow_operations=\["hostile_test::twice"\]'):
            load()
        assert load(allow_operations=["hostile_test::twice"])[0].tolist() == [[0.0, 0.0]]
        assert load(trusted=True)[0].tolist() == [[0.0, 0.0]]
        model = poptorch.inferenceModel(Small(), poptorch.Options().runOn("cpu", tier="graph"))
        with pytest.raises(poptorch.Error, match="trusted=True"):
            model.loadExecutable(path)
        model.loadExecutable(path, allow_operations=["hostile_test::twice"])


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        ("aten::empty.memory_format", [[2**40]]),
        ("aten::full.default", [[2**20, 2**20], 1.0]),
        ("aten::repeat.default", [{"node": 2}, [2**20, 2**20]]),
        ("aten::constant_pad_nd.default", [{"node": 2}, [2**38, 2**38]]),
        ("aten::empty_strided.default", [[2, 2], [2**40, 1]]),
    ],
)
def test_the_memory_of_a_step_is_limited_to_what_the_user_allows(operation, args, content, load):
    node = call_in(content)
    node["target"], node["args"], node["kwargs"] = operation, {"tuple": args}, {"dict": {}}
    with pytest.raises(poptorch.Error, match=r"would need .* GiB of memory, but .* GiB are allowed.*max_memory="):
        load()


def test_the_memory_limit_can_be_set(content, load):
    node = call_in(content)
    node["target"], node["args"], node["kwargs"] = "aten::zeros.default", {"tuple": [[1 << 20]]}, {"dict": {}}
    with pytest.raises(poptorch.Error, match="max_memory="):
        load(max_memory=1 << 20)
    assert load(max_memory=16 << 20)[0].shape == (1 << 20,)


@pytest.mark.parametrize("shape", [[2**50, 3], [2**62, 2**62], [-1, 3]])
def test_invalid_weights_are_refused(shape, content, load):
    content[0]["program"]["layout"]["parameters"][0][1][0] = shape
    with pytest.raises(poptorch.Error, match=r"GiB are allowed|modified or is damaged|not those of its program"):
        load()


def test_arguments_that_do_not_fit_are_refused_before_a_kernel_sees_them(content, load):
    node = call_in(content, "addmm")
    node["args"]["tuple"].reverse()
    with pytest.raises(poptorch.Error, match="arguments that do not fit"):
        load()


def test_a_graph_nested_too_deeply_is_refused(content, load):
    value = []
    for _ in range(80):
        value = [value]
    call_in(content)["args"] = {"tuple": value}
    with pytest.raises(poptorch.Error, match="nested more than"):
        load()


def test_paths_in_options_are_ignored_unless_the_file_is_trusted(path, tmp_path, content):
    popart = content[0]["extra"]["options"]["popart"]["pairs"]
    popart += [["cachePath", str(tmp_path / "cache")], ["enableEngineCaching", True]]
    popart += [
        ["engineOptions", {"pairs": [["autoReport.all", "true"], ["autoReport.directory", str(tmp_path / "report")]]}]
    ]
    write_archive(path, *content)
    loaded = poptorch.load(path)
    assert loaded.options._Popart.options.keys().isdisjoint({"cachePath", "engineOptions"})
    loaded(torch.ones(1, 3))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    trusted = poptorch.load(path, lambda options: options._Popart.remove("engineOptions"), trusted=True)
    assert trusted.options._Popart.options["cachePath"] == str(tmp_path / "cache")


@pytest.mark.parametrize(
    ("group", "entry"),
    [
        ("own", ["device_iterations", 10**12]),
        ("own", ["model_name", "../../elsewhere"]),
        ("own", ["device_iterations", "many"]),
        ("own", [{"enum": ["__builtins__", "exec"]}, 1]),
        ("training", ["gradient_accumulation", -1]),
    ],
)
def test_invalid_options_are_refused(group, entry, content, load):
    content[0]["extra"]["options"][group]["pairs"].append(entry)
    with pytest.raises(poptorch.Error, match="modified or is damaged"):
        load()


def test_flags_of_options_set_no_other_attribute(content, load):
    content[0]["extra"]["options"]["flags"]["__class__"] = "x"
    with pytest.raises(poptorch.Error, match="as a flag"):
        load()


@pytest.mark.parametrize("key", ["options", "training", "model", "poptorch"])
def test_a_file_without_one_of_its_parts_is_refused(content, load, key):
    del content[0]["extra"][key]
    with pytest.raises(poptorch.Error, match=f"does not have the form of a program: KeyError: '{key}'"):
        load()

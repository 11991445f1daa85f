import ast

import pytest

from pilotage.errors import PredictionError
from pilotage.prediction.splitting.applying import apply_split
from pilotage.prediction.splitting.lines import begin_block_lines, enter_stage_lines, expression_of

SCRIPT = """import poptorch

def main():
    net = build()
    options = poptorch.Options()
    train = poptorch.trainingModel(net, options)
    for batch in loader:
        train(batch)
"""


def test_a_path_becomes_an_expression():
    assert expression_of("encoder.layers.3.norm", "model") == "model.encoder.layers[3].norm"
    assert expression_of("odd-name", "model") == "model.get_submodule('odd-name')"


def test_each_module_begins_a_block_on_the_next_device():
    assert begin_block_lines(["layers.2", "layers.4"]) == [
        'model.layers[2] = poptorch.BeginBlock(model.layers[2], "stage 1", ipu_id=1)',
        'model.layers[4] = poptorch.BeginBlock(model.layers[4], "stage 2", ipu_id=2)',
    ]


def test_the_first_stage_begins_a_block_too():
    assert begin_block_lines(["head"], "net", "stem") == [
        'net.stem = poptorch.BeginBlock(net.stem, "stage 0", ipu_id=0)',
        'net.head = poptorch.BeginBlock(net.head, "stage 1", ipu_id=1)',
    ]


def test_a_model_for_pilotage_enters_its_stages():
    assert enter_stage_lines(["layers.2"]) == [
        "model.register_forward_pre_hook(lambda *_: pilotage.enter_stage(0))",
        "model.layers[2].register_forward_pre_hook(lambda *_: pilotage.enter_stage(1))",
    ]


def begin_at_layer_2(model):
    return begin_block_lines(["layers.2"], model)


def test_lines_are_written_before_the_model_is_wrapped(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    apply_split(script, begin_at_layer_2)
    lines = script.read_text().splitlines()
    assert lines[5] == '    net.layers[2] = poptorch.BeginBlock(net.layers[2], "stage 1", ipu_id=1)'
    assert lines[6] == "    train = poptorch.trainingModel(net, options)"
    ast.parse(script.read_text())


def test_a_call_of_pilotage_wraps_a_model_too(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import pilotage\nstep = pilotage.training(model, optimizer)\n")
    apply_split(script, lambda model: [f"# {model}"])
    assert script.read_text().splitlines()[1] == "# model"


def test_other_line_endings_stay(tmp_path):
    script = tmp_path / "train.py"
    script.write_bytes(SCRIPT.replace("\n", "\r\n").encode())
    apply_split(script, begin_at_layer_2)
    assert script.read_bytes().count(b"\r\n") == script.read_bytes().count(b"\n") == SCRIPT.count("\n") + 1


def test_a_script_that_begins_blocks_or_wraps_nothing_is_left_alone(tmp_path):
    script = tmp_path / "train.py"
    for text, problem in (
        (SCRIPT.replace("options =", "poptorch.BeginBlock(net.a, ipu_id=1); options ="), "already begins blocks"),
        ("print('nothing')\n", "no call of"),
        (SCRIPT.replace("(net,", "(build(),"), "with a variable"),
    ):
        script.write_text(text)
        with pytest.raises(PredictionError, match=problem):
            apply_split(script, begin_at_layer_2)
        assert script.read_text() == text

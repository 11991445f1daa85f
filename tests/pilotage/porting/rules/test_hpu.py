"""What the rules for Gaudi do beyond their examples."""

from pathlib import Path

from pilotage.porting.driver import port_paths, port_texts
from pilotage.porting.target import Target

PATH = Path("script.py")


def ported(text, *, at=PATH):
    return port_texts({at: text}, Target.HPU)


def test_statements_that_share_a_line_get_lines_of_their_own_with_the_marks():
    before = "import torch\nif x: loss.backward(); optimizer.step()\n"
    marked = "    loss.backward()\n    htcore.mark_step()\n    optimizer.step()\n    htcore.mark_step()\n"
    assert f"if x:\n{marked}" in ported(before).files[0].after


def test_the_last_line_may_have_no_end():
    assert ported("import torch\nloss.backward()").files[0].after.endswith("loss.backward()\nhtcore.mark_step()")


def test_a_script_that_marks_its_steps_stays_as_it_is():
    text = "import torch\nimport habana_frameworks.torch.core as ht\nloss.backward()\nht.mark_step()\n"
    assert not ported(text).files[0].is_changed


def test_the_name_of_an_existing_import_is_used():
    text = "import torch\nimport habana_frameworks.torch.core as core\nloss.backward()\n"
    assert ported(text).files[0].after.endswith("loss.backward()\ncore.mark_step()\n")


def test_a_function_without_counterpart_is_left_to_do_by_hand_at_its_place():
    report = ported("import torch\nprint(torch.cuda.nvtx.range_push('x'))\n")
    (finding,) = [each for each in report.findings if each.severity.is_left_to_do]
    assert (finding.where, finding.rule) == ("script.py:2:7", "hpu-names")
    assert "torch.cuda.nvtx.range_push" in finding.message


def test_requirements_that_would_replace_the_vendors_builds_are_named(tmp_path):
    (tmp_path / "requirements.txt").write_text("numpy\ntorch>=1.3\ntorch-geometric\n")
    (tmp_path / "train.py").write_text("import torch\n")
    (finding,) = port_paths([tmp_path], Target.HPU).findings
    assert finding.where == f"{tmp_path / 'requirements.txt'}:2:1"


def test_the_mode_is_set_before_the_bridge_is_imported():
    after = ported("import os\nimport torch\n\nd = torch.device('cuda')\n").files[0].after
    mode, bridge = after.index("PT_HPU_LAZY_MODE"), after.index("habana_frameworks")
    assert mode < bridge
    assert after.count("import os\n") == 1


def test_a_script_without_anything_of_torch_stays_as_it_is():
    assert not ported("print('cuda')\n").files[0].is_changed

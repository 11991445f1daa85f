import subprocess
import time

from hypothesis import given
from hypothesis import strategies as st

from pilotage.porting.line_diff import unified_diff


def diff(before, after):
    lines = [[f"{line}\n" for line in text] for text in (before, after)]
    return "".join(unified_diff(*lines, "a.py"))


def applied(before, text, folder):
    """What `patch` makes of a text with a diff."""
    path = folder / "a.py"
    path.write_text("".join(f"{line}\n" for line in before))
    subprocess.run(["patch", "--quiet", "a.py"], input=text, cwd=folder, text=True, check=True)
    return path.read_text().splitlines() if path.exists() else []


def test_equal_texts_have_no_diff():
    assert diff(["a", "b"], ["a", "b"]) == ""


def test_a_change_is_shown_with_three_lines_around_it():
    before = [f"line {number}" for number in range(20)]
    after = [*before[:10], "new", *before[11:]]
    assert diff(before, after).splitlines() == [
        "--- a.py",
        "+++ a.py",
        "@@ -8,7 +8,7 @@",
        " line 7",
        " line 8",
        " line 9",
        "-line 10",
        "+new",
        " line 11",
        " line 12",
        " line 13",
    ]


LINES = st.lists(st.sampled_from(["a", "b", "c", "  d", "e"]), max_size=25)


@given(before=LINES, after=LINES)
def test_the_diff_holds_both_texts_in_order(before, after):
    """What is kept and removed is part of the original, what is kept and added part of the result, none is lost."""
    lines = [line for line in diff(before, after).splitlines() if line[:3] not in ("---", "+++", "@@ ")]
    removed, added = ([line[1:] for line in lines if line[0] == sign] for sign in "-+")
    rest = list(before)
    for line in removed:
        rest.remove(line)
    assert sorted([*rest, *added]) == sorted(after)


def test_a_diff_can_be_applied(tmp_path):
    before = [f"line {number % 7}" for number in range(60)]
    after = [*before[:5], "x", "y", *before[9:30], *before[31:50], "z"]
    assert applied(before, diff(before, after), tmp_path) == after


def test_many_repeated_lines_cost_little_time():
    before = [
        line for number in range(10_000) for line in (f"def f{number}(x):", "    y = x.cuda()", "    return y", "")
    ]
    after = [line.replace(".cuda()", '.to("hpu")') for line in before]
    began = time.process_time()
    assert diff(before, after).count('+    y = x.to("hpu")') == 10_000
    assert time.process_time() - began < 5.0

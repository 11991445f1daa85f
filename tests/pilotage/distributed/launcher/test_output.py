from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.launcher.output import KEPT_LINES, TaggedOutput


@given(
    st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])), max_size=40), st.booleans()
)
def test_lines_are_passed_on_whole_and_the_last_ones_are_kept(lines, ends):
    out, err = io.BytesIO(), io.BytesIO()
    output = TaggedOutput(out, err, [0, None])
    text = "\n".join(lines) + ("\n" if ends and lines else "")
    output.follow(0, "stdout", io.BytesIO(text.encode())).join()
    output.follow(1, "stderr", io.BytesIO(text.encode())).join()
    said = text.split("\n")[:-1] if text.endswith("\n") else (text.split("\n") if text else [])
    assert out.getvalue().decode() == "".join(f"[1,0]<stdout>:{line}\n" for line in said)
    assert err.getvalue() == b""
    assert output.last_lines(1) == said[-KEPT_LINES:]
    assert output.last_lines(2) == []

"""A notebook as a page: its text, its code, and the outputs that are stored in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Cell = Mapping[str, Any]


def page_from(notebook: Path) -> str:
    """The whole notebook in Markdown; pictures are inside of the text."""
    cells = json.loads(notebook.read_text())["cells"]
    return "\n\n".join(_markdown(cell) for cell in cells if "".join(cell["source"]).strip()) + "\n"


def _markdown(cell: Cell) -> str:
    source = "".join(cell["source"]).strip()
    if cell["cell_type"] == "markdown":
        return source
    outputs = [_output(each) for each in cell.get("outputs", [])]
    return "\n\n".join([f"```python\n{source}\n```", *filter(None, outputs)])


def _output(output: Mapping[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        return f'<figure><img alt="The figure that this cell draws" src="data:image/png;base64,{picture}"></figure>'
    text = "".join(output.get("text", data.get("text/plain", ""))).rstrip()
    return f'```text title="prints"\n{text}\n```' if text else ""

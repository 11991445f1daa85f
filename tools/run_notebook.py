"""Make a notebook from a script, run it, and store it with its outputs: python -m tools.run_notebook SCRIPT."""

from __future__ import annotations

import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient


def main() -> None:
    """Write the notebook beside its script."""
    script = Path(sys.argv[1])
    notebook = jupytext.read(script)
    client = NotebookClient(notebook, timeout=3600, startup_timeout=900, kernel_name="python3")
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # When each cell ran changes with every run.
    notebook.metadata.pop("language_info", None)
    target = script.with_suffix(".ipynb")
    nbformat.write(notebook, target)
    print(target)


if __name__ == "__main__":
    main()

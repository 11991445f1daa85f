import json

from tools.site.notebooks import page_from


def test_text_code_and_outputs_follow_each_other(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        {
            "cell_type": "code",
            "source": ["print(1)"],
            "outputs": [
                {"output_type": "stream", "text": ["1\n"]},
                {"output_type": "display_data", "data": {"image/png": "aGVsbG8=\n", "text/plain": ["<Figure>"]}},
            ],
        },
        {"cell_type": "code", "source": [], "outputs": []},
    ]
    notebook = tmp_path / "a.ipynb"
    notebook.write_text(json.dumps({"cells": cells}))
    assert page_from(notebook) == (
        '# Title\nwords\n\n```python\nprint(1)\n```\n\n```text title="prints"\n1\n```\n\n'
        '<figure><img alt="The figure that this cell draws" src="data:image/png;base64,aGVsbG8="></figure>\n'
    )

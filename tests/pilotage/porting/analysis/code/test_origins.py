from __future__ import annotations

import ast

from pilotage.porting.analysis.code.origins import origins


def made(project, name: str, source: int = 0) -> list[str]:
    script = project.sources[source]
    uses = [node for node in ast.walk(script.tree) if isinstance(node, ast.Name) and node.id == name]
    return sorted(ast.unparse(each.node) for each in origins(project, script, uses[-1]))


def test_a_value_is_followed_through_moves_wrappers_and_reassignment(project):
    text = """
    model = nn.Linear(1, 1)
    model = nn.DataParallel(model.to("cuda"))
    model(1)
    """
    assert made(project(script=text), "model") == ["nn.Linear(1, 1)"]


def test_a_value_is_followed_through_arguments_and_returned_tuples(project):
    text = """
    def build():
        model = nn.Linear(1, 1)
        return model, 3

    def use(net):
        net(1)

    made, number = build()
    use(made)
    """
    script = project(script=text)
    net = [node for node in ast.walk(script.sources[0].tree) if isinstance(node, ast.Name) and node.id == "net"][-1]
    found = origins(script, script.sources[0], net)
    assert [ast.unparse(each.node) for each in found] == ["nn.Linear(1, 1)"]


def test_a_value_is_followed_into_another_file(project):
    texts = {
        "factory": "def build():\n    return nn.Linear(1, 1)\n",
        "script": "from factory import build\nmodel = build()\nmodel(1)\n",
    }
    assert made(project(**texts), "model", source=1) == ["nn.Linear(1, 1)"]


def test_members_of_a_dictionary_are_found_and_slices_are_not_their_whole(project):
    text = """
    loaders = {"a": DataLoader(first), "b": DataLoader(second)}
    loader = loaders[name]
    data = torch.randn(10)
    part = data[:5]
    loader, part
    """
    script = project(script=text)
    assert made(script, "loader") == ["DataLoader(first)", "DataLoader(second)"]
    assert made(script, "part") == ["data[:5]"]


def test_a_value_that_refers_to_itself_ends(project):
    assert made(project(script="x = x.next()\nx\n"), "x") == ["x.next()"]

"""Removes process groups of torch.distributed, and replaces their ranks and sizes."""

from __future__ import annotations

import ast

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE"]

NAME = "process-groups"
_GONE = ("init_process_group", "destroy_process_group", "barrier", "monitored_barrier")
_COLLECTIVE = ("all_reduce", "broadcast", "reduce")
_ALONE = {"get_rank": "0", "get_world_size": "1", "is_initialized": "False", "is_available": "False"}
_INSTANCES = {
    "get_rank": "popdist.getInstanceIndex()",
    "get_world_size": "popdist.getNumInstances()",
    "is_initialized": "False",
    "is_available": "False",
}
_VARIABLES = {"RANK": "get_rank", "LOCAL_RANK": "get_rank", "WORLD_SIZE": "get_world_size"}


def apply(porting: Porting) -> None:
    """Convert calls of torch.distributed and the variables of its launchers."""
    if not porting.has_work:
        return
    answers = _INSTANCES if porting.target is Target.POPDIST else _ALONE
    for source in porting.project.sources:
        names = porting.project.names[source]
        for node in source.nodes:
            name = names.calls(node) or ""
            if isinstance(node, ast.Call) and name.startswith("torch.distributed."):
                _call(porting, source, node, name.removeprefix("torch.distributed."), answers)
            elif isinstance(node, ast.Call) and name in (
                "torch.multiprocessing.spawn",
                "torch.multiprocessing.start_processes",
            ):
                _spawn(porting, source, node, answers["get_rank"])
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "int" and node.args:
                variable = _variable(porting, source, node.args[0])
                if variable in _VARIABLES:
                    porting.replace(source, node, answers[_VARIABLES[variable]], NAME)


def _call(porting: Porting, source: Source, call: ast.Call, name: str, answers: dict[str, str]) -> None:
    statement = source.parents[call]
    if name in answers:
        porting.replace(source, call, answers[name], NAME)
    elif (name in _GONE and isinstance(statement, ast.Expr)) or (
        name in _COLLECTIVE and isinstance(statement, ast.Expr) and porting.target is not Target.POPDIST
    ):
        porting.remove(source, statement, NAME)
    elif "." not in name:
        porting.find(
            source,
            call,
            NAME,
            Severity.BY_HAND,
            f"torch.distributed.{name} exchanges values between processes of the original.",
            "Leave it out, or exchange them between instances yourself.",
        )


def _spawn(porting: Porting, source: Source, call: ast.Call, rank: str) -> None:
    """Call the function that used to be called in each process."""
    given = next((each.value for each in call.keywords if each.arg == "args"), None)
    given = given if given is not None else (call.args[1] if len(call.args) > 1 else None)
    function = call.args[0] if call.args else next(each.value for each in call.keywords if each.arg == "fn")
    if given is not None and not isinstance(given, ast.Tuple):
        arguments = [rank, f"*{source.segment(given)}"]
    else:
        arguments = [rank, *(source.segment(each) for each in (given.elts if isinstance(given, ast.Tuple) else []))]
    porting.replace(source, call, f"{source.segment(function)}({', '.join(arguments)})", NAME)


def _variable(porting: Porting, source: Source, node: ast.expr) -> str:
    """The environment variable that an expression reads."""
    names = porting.project.names[source]
    if isinstance(node, ast.Subscript) and names.dotted(node.value) == "os.environ":
        return str(node.slice.value) if isinstance(node.slice, ast.Constant) else ""
    if names.calls(node) in ("os.environ.get", "os.getenv") and isinstance(node, ast.Call) and node.args:
        return str(node.args[0].value) if isinstance(node.args[0], ast.Constant) else ""
    return ""


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="Calls that make and end process groups are removed. Ranks become 0 of 1, or with popdist the index of "
    "the instance; spawned functions are called directly.",
    why="One process runs all replicas of a program, and instances are started by poprun.",
    example=Example(
        before=PLAIN_STEP
        + """\
torch.distributed.init_process_group("nccl")
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
if torch.distributed.get_rank() == 0:
    torch.save(model.state_dict(), "model.pt")
""",
        after=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
if 0 == 0:
    torch.save(model.state_dict(), "model.pt")
""",
    ),
    apply=apply,
)

"""Removes DataParallel and DistributedDataParallel."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.kinds import Kind, kind_of
from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE", "is_parallel"]

NAME = "data-parallel"
WRAPPERS = (
    "torch.nn.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
)


def apply(porting: Porting) -> None:
    """Use the module itself instead of its parallel wrapper."""
    if not porting.has_work or not any(is_parallel(porting, source) for source in porting.project.sources):
        return
    for source in porting.project.sources:
        for node in source.nodes:
            if isinstance(node, ast.Call) and porting.project.names[source].calls(node) in WRAPPERS:
                _unwrap(porting, source, node)
            elif isinstance(node, ast.Attribute) and node.attr == "module" and _is_wrapped(porting, source, node):
                _, start = source.span(node.value)
                porting.edit(source, start, source.span(node)[1], "", NAME)


def is_parallel(porting: Porting, source: Source) -> bool:
    """Whether a script wraps a model for several GPUs."""
    return any(porting.project.names[source].calls(node) in WRAPPERS for node in source.nodes)


def _is_wrapped(porting: Porting, source: Source, node: ast.Attribute) -> bool:
    """Whether ``.module`` is that of a wrapper, and not an attribute of something else."""
    if path_of(node.value) is None or porting.project.names[source].dotted(node) is not None:
        return False
    return kind_of(porting.project, source, node.value) is Kind.MODULE


def _unwrap(porting: Porting, source: Source, call: ast.Call) -> None:
    statement = source.parents[call]
    given = call.args[0] if call.args else next((each.value for each in call.keywords if each.arg == "module"), None)
    if given is None:
        return
    target = path_of(statement.targets[0]) if isinstance(statement, ast.Assign) else None
    if isinstance(statement, ast.Assign) and target is not None and target == path_of(given):
        porting.remove(source, statement, NAME)
    else:
        start, end = source.span(call)
        inner_start, inner_end = source.span(given)
        porting.edit(source, start, inner_start, "", NAME)
        porting.edit(source, inner_end, end, "", NAME)
    porting.find(
        source,
        call,
        NAME,
        Severity.NOTE,
        f"One replica gets the whole batch, and training stays the same. For n replicas, {_replicas(porting)} and "
        "divide the batch size by n.",
    )


def _replicas(porting: Porting) -> str:
    if porting.target is Target.PILOTAGE:
        return "give pilotage.training replicas=n"
    return "set replicationFactor(n)"


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="DataParallel and DistributedDataParallel are removed, and ``model.module`` becomes ``model``. With "
    "poptorch an option, replicationFactor, takes their place.",
    why="Replicas are an option of the program. With one replica the batch stays the same, so training does too.",
    example=Example(
        before=PLAIN_STEP
        + """\
model = nn.DataParallel(model)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
torch.save(model.module.state_dict(), "model.pt")
""",
        after=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
""",
        finds="One replica gets the whole batch",
    ),
    apply=apply,
)

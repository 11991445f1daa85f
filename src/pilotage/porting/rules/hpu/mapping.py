"""From CUDA to Gaudi as edits: strings, methods and names; the rules say where each applies."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.project import Project
from pilotage.porting.sources.edits import Edit
from pilotage.porting.sources.source import Source

__all__ = ["RENAMED", "SAME_NAMES", "Planned", "backend_edits", "device_edits", "is_set_device", "name_edits"]

Planned = tuple[ast.AST, Edit]
"""An edit, and the node that it is about."""

_CUDA = re.compile(r"cuda(:\d+)?")
_CUDA_BEGINS = re.compile(r"cuda(:|$)")
_INDEX = re.compile(r"(^|[._])(rank|local_rank|gpu|gpu_id|device_id)$")
_TENSORFLOW_GPU = re.compile(r"(/?(device:)?)(GPU|gpu)(:\d+)?")

SAME_NAMES = frozenset(
    {
        "is_available",
        "device_count",
        "current_device",
        "synchronize",
        "empty_cache",
        "get_device_name",
        "get_device_properties",
        "manual_seed",
        "manual_seed_all",
        "seed",
        "seed_all",
        "initial_seed",
        "get_rng_state",
        "get_rng_state_all",
        "set_rng_state",
        "set_rng_state_all",
        "memory_allocated",
        "max_memory_allocated",
        "memory_reserved",
        "max_memory_reserved",
        "memory_stats",
        "memory_summary",
        "mem_get_info",
        "reset_peak_memory_stats",
        "is_bf16_supported",
        "current_stream",
        "default_stream",
        "stream",
        "Stream",
        "Event",
    }
)
"""Functions of ``torch.cuda`` that ``torch.hpu`` has too."""

RENAMED = {
    "reset_max_memory_allocated": "reset_peak_memory_stats",
    "reset_max_memory_cached": "reset_peak_memory_stats",
}
"""Functions that ``torch.hpu`` has under another name."""


def device_edits(project: Project, source: Source, node: ast.AST, rule: str) -> Iterator[Planned]:
    """Device strings, indices of cards, ``.cuda()``, and devices of TensorFlow."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            yield from _call_edits(project, source, each, rule)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and _CUDA.fullmatch(each.value):
            if not _is_part_of_another_edit(project, source, each):
                yield _replacing(source, each, _quoted(source, each, "hpu"), rule)
        elif isinstance(each, ast.IfExp) and _is_processor(each.orelse) and _is_index(project, source, each.body):
            yield _replacing(source, each.body, '"hpu"', rule)
        elif isinstance(each, ast.JoinedStr) and _begins_with_cuda(each):
            yield _replacing(source, each, '"hpu"', rule)


def name_edits(project: Project, source: Source, node: ast.AST, rule: str) -> Iterator[Planned]:
    """Names that ``torch.hpu`` has too, of ``torch.cuda`` and ``torch.accelerator``; a device context becomes none."""
    for each in ast.walk(node):
        name = project.names[source].dotted(each) if isinstance(each, ast.Attribute) else None
        if name is None or not name.startswith(("torch.cuda.", "torch.accelerator.")):
            continue
        rest = name.removeprefix("torch.cuda.").removeprefix("torch.accelerator.")
        if rest == "current_accelerator":
            call = source.parents.get(each)
            yield _replacing(source, call if isinstance(call, ast.Call) else each, 'torch.device("hpu")', rule)
        elif rest == "OutOfMemoryError":
            yield _replacing(source, each, "torch.OutOfMemoryError", rule)
        elif rest in SAME_NAMES or rest in RENAMED:
            yield _replacing(source, each, f"torch.hpu.{RENAMED.get(rest, rest)}", rule)
        elif rest == "device" and isinstance(parent := source.parents.get(each), ast.Call) and parent.func is each:
            yield _replacing(source, parent, "contextlib.nullcontext()", rule)


def backend_edits(source: Source, node: ast.AST, rule: str) -> Iterator[Planned]:
    """The name of NCCL as a backend becomes that of HCCL."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and each.value == "nccl":
            yield _replacing(source, each, _quoted(source, each, "hccl"), rule)


def is_set_device(project: Project, source: Source, statement: ast.stmt) -> bool:
    """Whether a statement only selects the card of this process, which Gaudi's launcher variables do."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and project.names[source].calls(statement.value) == "torch.cuda.set_device"
    )


def _call_edits(project: Project, source: Source, call: ast.Call, rule: str) -> Iterator[Planned]:
    name = project.names[source].calls(call)
    if name == "torch.device" and len(call.args) == 2 and _is_cuda(call.args[0]):
        start, end = source.span(call.args[0])[0], source.span(call.args[1])[1]
        yield call, Edit(start=start, end=end, text='"hpu"', rule=rule)
    elif name in ("tensorflow.device", "tf.device") and call.args:
        first = call.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            found = _TENSORFLOW_GPU.fullmatch(first.value)
            if found is not None:
                text = f"{found[1]}HPU{found[4] or ''}"
                yield _replacing(source, first, _quoted(source, first, text), rule)
    elif not isinstance(call.func, ast.Attribute):
        return
    elif call.func.attr == "format" and _is_cuda(call.func.value, begins=True):
        yield _replacing(source, call, '"hpu"', rule)
    elif call.func.attr == "cuda" and name is None:
        kept = [source.segment(each) for each in call.keywords if each.arg != "device"]
        text = ", ".join(['.to("hpu"', *kept]) + ")"
        yield call, Edit(start=source.span(call.func.value)[1], end=source.span(call)[1], text=text, rule=rule)
    elif call.func.attr == "to" and name is None:
        given = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "device")]
        yield from (_replacing(source, each, '"hpu"', rule) for each in given if _is_index(project, source, each))


def _is_index(project: Project, source: Source, node: ast.expr) -> bool:
    """Whether a variable is the number of a card, such as a local rank; a process on Gaudi sees one card."""
    if path_of(node) is None or not _INDEX.search(ast.unparse(node)):
        return False
    made = [each.node for each in origins(project, source, node)]
    texts = (each for each in made if isinstance(each, ast.Constant | ast.JoinedStr) and not _is_number(each))
    return not any(texts) and not any(project.names[source].calls(each) == "torch.device" for each in made)


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, int))


def _is_processor(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "cpu"


def _is_part_of_another_edit(project: Project, source: Source, node: ast.Constant) -> bool:
    """Whether a string is in a larger expression that is replaced as a whole, or is a documentation string."""
    parent = source.parents.get(node)
    if isinstance(parent, ast.Expr | ast.JoinedStr):
        return True
    if isinstance(parent, ast.Call) and parent.args and parent.args[0] is node:
        name = project.names[source].calls(parent)
        return name in ("torch.autocast", "torch.amp.GradScaler") or (name == "torch.device" and len(parent.args) == 2)
    is_type = isinstance(parent, ast.keyword) and parent.arg == "device_type"
    call = source.parents.get(parent) if is_type and parent is not None else None
    return call is not None and project.names[source].calls(call) == "torch.autocast"


def _is_cuda(node: ast.expr, *, begins: bool = False) -> bool:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return bool(_CUDA_BEGINS.match(node.value) if begins else _CUDA.fullmatch(node.value))


def _begins_with_cuda(node: ast.JoinedStr) -> bool:
    first = node.values[0] if node.values else None
    return isinstance(first, ast.Constant) and str(first.value) == "cuda:"


def _quoted(source: Source, node: ast.AST, text: str) -> str:
    quote = "'" if source.segment(node).startswith("'") else '"'
    return f"{quote}{text}{quote}"


def _replacing(source: Source, node: ast.AST, text: str, rule: str) -> Planned:
    start, end = source.span(node)
    return node, Edit(start=start, end=end, text=text, rule=rule)

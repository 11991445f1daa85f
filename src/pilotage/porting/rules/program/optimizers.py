"""Optimizers become PopTorch's."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.kinds import torch_name
from pilotage.porting.finding import Severity
from pilotage.porting.plan import PlannedStep
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, GuideEdit, Rule
from pilotage.porting.rules.plain_example import PLAIN_LOOP
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import PROGRAMS
from pilotage.porting.writing.signatures import argument_place, keyword_span

__all__ = ["RULE"]

NAME = "optimizer"
SUPPORTED = ("SGD", "Adam", "AdamW", "RMSprop")
_NOT_CAPTURED = ("LBFGS", "SparseAdam")
"""Optimizers that `pilotage.training` refuses."""
_ONLY_SPEED = ("fused", "capturable", "differentiable", "foreach")
_CYCLING = ("OneCycleLR", "CyclicLR")


def apply(porting: Porting) -> None:
    """Convert the optimizers of all steps; refuse those that no program can contain."""
    for planned in porting.plan.steps:
        for origin in planned.optimizers:
            assert isinstance(origin.node, ast.Call)
            name = (torch_name(porting.project, origin) or "").rpartition(".")[2]
            source, call = origin.source, origin.node
            if porting.target is Target.PILOTAGE:
                _refuse_what_is_not_captured(porting, source, call, name)
                continue
            if name not in SUPPORTED and _has_others(porting, planned):
                porting.find(
                    source,
                    call,
                    NAME,
                    Severity.WARNING,
                    f"{name} cannot become part of a program: where the script chooses it, PopTorch raises an error.",
                )
                continue
            if name not in SUPPORTED:
                porting.find(
                    source,
                    call,
                    NAME,
                    Severity.REFUSED,
                    f"{name} cannot become part of a program.",
                    f"Use one of {', '.join(SUPPORTED)}, and check that the model still learns.",
                )
                continue
            if _refuse_arguments(porting, origin.source, call):
                continue
            porting.replace(source, call.func, f"poptorch.optim.{name}", NAME)
            for keyword in call.keywords:
                if keyword.arg in _ONLY_SPEED:
                    porting.edit(source, *keyword_span(source, call, keyword), "", NAME)
            _keep_betas_variable(porting, name, call, origin.source)


def _has_others(porting: Porting, planned: PlannedStep) -> bool:
    """Whether a script chooses between optimizers, and PopTorch has one of them."""
    names = [(torch_name(porting.project, each) or "").rpartition(".")[2] for each in planned.optimizers]
    return any(name in SUPPORTED for name in names)


def _refuse_what_is_not_captured(porting: Porting, source: Source, call: ast.Call, name: str) -> None:
    """`pilotage.training` captures the steps of all optimizers but two."""
    if name in _NOT_CAPTURED:
        porting.find(
            source,
            call,
            NAME,
            Severity.REFUSED,
            f"{name} cannot become part of a program.",
            "Use another optimizer of torch.optim, and check that the model still learns.",
        )


def _refuse_arguments(porting: Porting, source: Source, call: ast.Call) -> bool:
    for keyword in call.keywords:
        is_off = isinstance(keyword.value, ast.Constant) and not keyword.value.value
        if keyword.arg in ("amsgrad", "maximize") and not is_off:
            porting.find(
                source,
                keyword,
                NAME,
                Severity.REFUSED,
                f"{keyword.arg} is not supported in a program.",
                f"Leave out {keyword.arg}, and check that the model still learns.",
            )
            return True
    return False


def _keep_betas_variable(porting: Porting, name: str, call: ast.Call, source: Source) -> None:
    """Schedules that cycle the momentum change betas, which are constants unless they are given."""
    if not name.startswith("Adam") or any(each.arg == "betas" for each in call.keywords) or len(call.args) > 2:
        return
    if _cycles(porting):
        offset, text = argument_place(source, call, "betas=(0.9, 0.999)")
        porting.edit(source, offset, offset, text, NAME)


def _cycles(porting: Porting) -> bool:
    """Whether a schedule of the project moves the momentum."""
    if "cycles" not in porting.known:
        names = porting.project.names
        calls = (names[source].calls(node) or "" for source in porting.project.sources for node in source.nodes)
        porting.known["cycles"] = any(each.endswith(_CYCLING) for each in calls)
    return bool(porting.known["cycles"])


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="torch.optim's SGD, Adam, AdamW and RMSprop become those of poptorch.optim; arguments that only "
    "matter for speed on a GPU are removed. Other optimizers are refused. With pilotage all optimizers stay as "
    "they are, except LBFGS and SparseAdam, which are refused.",
    why="The update is part of the program, so it must be one that the engine knows. poptorch's "
    "classes take values that may change, such as the learning rate, as inputs of the program.",
    example=Example(
        before="""\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(8, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
"""
        + PLAIN_LOOP,
        after="""\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(8, 1)
optimizer = poptorch.optim.AdamW(model.parameters(), lr=1e-3)
"""
        + PLAIN_LOOP,
    ),
    apply=apply,
    not_followed=(
        GuideEdit(
            guide="CosmicTagger on Graphcore",
            edit="wraps the network with `torch.optim.SGD(lr=1e-3)`, and makes `poptorch.optim.Adam` elsewhere without "
            "using it",
            instead="wraps it with the optimizer of the program, so that its schedule and its name in the "
            "configuration keep their meaning",
        ),
    ),
)

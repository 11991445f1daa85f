"""Plans the module that joins a model and its loss: its constructor, its arguments and its results."""

from __future__ import annotations

import ast
import keyword
from dataclasses import dataclass, field

from pilotage.porting.analysis.code.flow import assigned, path_of, uses
from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.analysis.code.scopes import Function, Scope
from pilotage.porting.analysis.devices import device_arguments
from pilotage.porting.analysis.gradient_modes import gradient_switches
from pilotage.porting.analysis.kinds import Kind, kind_of
from pilotage.porting.analysis.losses import LossReading
from pilotage.porting.analysis.numbers import is_random_number, single_constant
from pilotage.porting.analysis.refusal import Refused
from pilotage.porting.analysis.step import TrainingStep
from pilotage.porting.project import Project

__all__ = ["Input", "Joint", "joint_of"]

_TAKEN = {
    "training",
    "forward",
    "train",
    "eval",
    "type",
    "float",
    "half",
    "double",
    "to",
    "apply",
    "parameters",
    "name",
}
"""Attributes of a module that must not be hidden."""
_OF_TENSORS = {"shape", "dtype", "device", "T", "grad", "data", "ndim", "requires_grad", "size"}


_FROM_PYTHON = ("torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.LongTensor", "torch.FloatTensor")
"""Functions that make tensors from Python's and numpy's values."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """One argument of forward."""

    name: str
    given: str
    """The code that the call passes for it."""

    stars: str = ""
    replaces: tuple[ast.expr, ...] = ()
    """The expressions in the region that the argument replaces, if it has another name there."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Joint:
    """The parts of the joined module."""

    step: TrainingStep
    dependencies: dict[str, str]
    """Variables that the module is made from, and the attributes that hold them."""

    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    """The results of a call; the loss is the last."""

    is_torch_loss: bool
    """Whether the loss is the result of a loss function of torch, which is found without a mark."""

    is_divided: bool
    """Whether the loss is divided by the number of accumulated passes."""

    criterion: str | None
    """The criterion, if the region is just ``output = model(inputs); loss = criterion(output, target)``."""

    constants: dict[str, str] = field(default_factory=dict)
    """Arguments of a function that makes one step, and the number or text that every call gives for them."""

    divisions: tuple[ast.AST, ...] = field(default=())
    """Divisions by that number: statements to leave out, or quotients of which the dividend is kept."""


def joint_of(project: Project, step: TrainingStep) -> Joint:
    """Plan the module for a step."""
    return _Planning(project, step).joint()


class _Planning:
    """Decides how each variable of a step is passed to the joined module.

    Large because every kind of variable is analysed differently, and all of them in the same step.
    """

    def __init__(self, project: Project, step: TrainingStep) -> None:
        self._project = project
        self._step = step
        self._scope = step.scope
        self._source = step.source
        self._nodes: list[ast.AST] = [*step.region]
        if path_of(step.loss) is None:
            self._nodes.append(step.loss)

    def joint(self) -> Joint:
        dependencies: dict[str, str] = {}
        inputs: list[str] = []
        constants: dict[str, str] = {}
        for path, node in self._free():
            constant = self._constant(path, node)
            if constant is not None:
                constants[path] = constant
                continue
            role = self._role(path, node)
            if role == "dependency":
                dependencies.setdefault(path, "")
            elif role == "input" and path not in inputs:
                inputs.append(path)
        if not self._step.models:
            for path in self._hidden_models():
                dependencies.setdefault(path, "")
        in_order = sorted(
            dependencies, key=lambda path: (path not in self._step.models, list(dependencies).index(path))
        )
        losses = LossReading(self._project, self._step, self._nodes)
        return Joint(
            step=self._step,
            dependencies=_attributes(in_order),
            inputs=tuple(self._inputs(inputs)),
            constants=constants,
            outputs=self._outputs(),
            is_torch_loss=losses.is_torch_loss(),
            is_divided=bool(losses.divisions),
            criterion=losses.criterion(inputs),
            divisions=losses.divisions,
        )

    def _free(self) -> list[tuple[str, ast.expr]]:
        """The variables from outside that the region reads, in order."""
        known: set[str] = set()
        found: list[tuple[str, ast.expr]] = []
        for node in self._nodes:
            devices = device_arguments(self._project, self._source, node)
            devices |= {
                part for each in gradient_switches(self._project, self._source, node) for part in ast.walk(each)
            }
            bound_inside = assigned(node) if isinstance(node, ast.With | ast.If | ast.For) else set()
            first_bound: set[str] = set()
            for path, each, is_written in uses(node):
                if each in devices:  # These are removed.
                    continue
                if is_written:
                    first_bound.add(path)
                elif path not in known and not (path in bound_inside and path in first_bound):
                    found.append((path, each))
            if isinstance(node, ast.AugAssign):
                target = path_of(node.target)
                if target is not None and target not in known:
                    found.append((target, node.target))
            known |= assigned(node)
        return found

    def _constant(self, path: str, node: ast.expr) -> str | None:
        """The constant that every call passes for an argument of a function that makes one step, if it is the same."""
        if self._step.loop is not None or not self._scope.is_parameter(path):
            return None
        return single_constant(self._project, self._source, node)

    def _role(self, path: str, node: ast.expr) -> str:
        """Decide whether a variable becomes an argument of forward, becomes an attribute, or stays."""
        step, scope = self._step, self._scope
        if path in step.models:
            return "dependency"
        if path == "self":
            raise Refused(self._source, node, "loss-from-elsewhere", "self")
        if path.startswith("self."):
            return self._role_of_attribute(path, node)
        owner = scope.resolve(path)
        if owner is None or _is_definition(owner, path):
            if owner is not None and owner.is_function:
                return "dependency"
            return "global"
        is_called = self._is_called(path)
        if owner is scope and self._is_bound_in_step(path) and not is_called:
            self._refuse_counters(path, node)
            self._refuse_python_data(path, node)
            return "input"
        if is_called or kind_of(self._project, self._source, node) is Kind.MODULE:
            return "dependency"
        if step.loop is None and owner is scope:
            return "input"
        self._refuse_changing(path, node, owner)
        if self._is_positional_argument(path) and not self._is_plain(node):
            return "input"
        return "global" if owner.node is scope.source.tree else "dependency"

    def _role_of_attribute(self, path: str, node: ast.expr) -> str:
        owner = self._scope.method_of
        is_stored = owner is not None and any(
            path in each.bindings for _, each in self._project.classes(self._source, owner)
        )
        if is_stored:
            for each in ast.walk(self._step.loop or self._scope.node):
                if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and path_of(each) == path:
                    raise Refused(self._source, node, "changing-value", path)
        return "dependency"

    def _is_bound_in_step(self, path: str) -> bool:
        """Whether each step assigns the variable."""
        if self._step.loop is not None:
            return path in assigned(self._step.loop)
        if self._scope.is_parameter(path):
            return not self._is_called(path) and path not in self._step.models
        return path in {each for node in self._scope.body for each in assigned(node)} and not self._is_called(path)

    def _is_called(self, path: str) -> bool:
        return any(
            isinstance(each, ast.Call) and path_of(each.func) == path for node in self._nodes for each in ast.walk(node)
        )

    def _is_positional_argument(self, path: str) -> bool:
        return any(
            path_of(given) == path
            for node in self._nodes
            for each in ast.walk(node)
            if isinstance(each, ast.Call)
            for given in each.args
        )

    def _is_plain(self, node: ast.expr) -> bool:
        """Whether a variable is a number or a text."""
        found = [each.node for each in origins(self._project, self._source, node)]
        return bool(found) and all(isinstance(each, ast.Constant | ast.Attribute | ast.UnaryOp) for each in found)

    def _refuse_counters(self, path: str, node: ast.expr) -> None:
        """Refuse step counters: each value would need its own program."""
        loop = self._step.loop
        if not isinstance(loop, ast.For):
            return
        counts = isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name)
        name = loop.iter.func.id if counts and isinstance(loop.iter, ast.Call) else ""  # type: ignore[attr-defined]
        target = loop.target
        if name == "range" and path_of(target) == path:
            raise Refused(self._source, node, "changing-value", path)
        if isinstance(target, ast.Tuple) and path_of(target.elts[0]) == path and "enumerate" in ast.unparse(loop.iter):
            raise Refused(self._source, node, "changing-value", path)

    def _refuse_python_data(self, path: str, node: ast.expr) -> None:
        """A tensor that the step makes from Python values would need another program for each of them."""
        for each in self._source.ancestors(node):
            if isinstance(each, ast.stmt):
                return
            if self._project.names[self._source].calls(each) in _FROM_PYTHON:
                raise Refused(self._source, node, "changing-value", path)

    def _refuse_changing(self, path: str, node: ast.expr, owner: Scope) -> None:
        """A number that an outer loop changes would be fixed when the program is made."""
        for loop in self._source.ancestors(self._step.anchor):
            if isinstance(loop, ast.For | ast.While) and loop is not self._step.loop and path in assigned(loop):
                raise Refused(self._source, node, "changing-value", path)
        if owner.node is self._source.tree and owner is not self._scope:
            names = [each for each in self._source.nodes if isinstance(each, ast.Global) and path in each.names]
            if names:
                raise Refused(self._source, node, "changing-value", path)

    def _hidden_models(self) -> list[str]:
        from pilotage.porting.analysis.trained import Trained

        found = []
        for place, path in Trained(self._project, self._source, self._step.optimizer).paths:
            if place is self._source and self._scope.resolve(path) is not None and path not in found:
                found.append(path)
        if not found:
            raise Refused(self._source, self._step.anchor, "model-not-found", self._step.loss_name)
        return found

    def _inputs(self, paths: list[str]) -> list[Input]:
        found: list[Input] = []
        names = set(paths)
        for path in paths:
            parts = self._parts(path)
            if parts is None:
                given = f"torch.tensor(float({path}))" if self._is_random_number(path) else path
                found.append(Input(name=path.removeprefix("self."), given=given, stars=self._stars(path)))
                continue
            for text, nodes in parts.items():
                name = _name_of_part(nodes[0])
                while not name.isidentifier() or keyword.iskeyword(name) or name in names:
                    name = f"{path.removeprefix('self.')}_{name}" if name.isidentifier() else f"{path}_part"
                names.add(name)
                found.append(Input(name=name, given=text, replaces=tuple(nodes)))
        return sorted(found, key=lambda each: len(each.stars))

    def _parts(self, path: str) -> dict[str, list[ast.expr]] | None:
        """The parts of a batch, such as ``batch["image"]``, if only parts of it are used."""
        found: dict[str, list[ast.expr]] = {}
        fields: list[ast.expr] = []
        wholes: list[ast.expr] = []
        for node in self._nodes:
            for each, use, is_written in uses(node):
                if each != path:
                    continue
                part = self._source.parents[use]
                is_part = isinstance(part, ast.Subscript) and part.value is use and isinstance(part.slice, ast.Constant)
                is_field = (
                    isinstance(part, ast.Attribute)
                    and part.attr not in _OF_TENSORS
                    and not _is_called_by(part, self._source.parents[part])
                )
                if is_field:
                    fields.append(use)
                if is_written or not (is_part or is_field) or not isinstance(part, ast.expr):
                    wholes.append(use)
                    continue
                found.setdefault(self._source.segment(part), []).append(part)
        given = [each for each in wholes if isinstance(self._source.parents[each], ast.Call)]
        if fields and given:
            raise Refused(self._source, given[0], "object-input", path)
        return None if wholes else found or None

    def _is_random_number(self, path: str) -> bool:
        """Whether a variable is a number that Python or numpy draws, such as the weight of a mixup."""
        node = next((each for each_path, each in self._free() if each_path == path), None)
        return node is not None and is_random_number(self._project, self._source, node)

    def _stars(self, path: str) -> str:
        for node in self._nodes:
            for each in ast.walk(node):
                if isinstance(each, ast.keyword) and each.arg is None and path_of(each.value) == path:
                    return "**"
                if isinstance(each, ast.Starred) and path_of(each.value) == path:
                    return "*"
        return ""

    def _outputs(self) -> tuple[str, ...]:
        step = self._step
        made: dict[str, None] = {}
        for node in step.region:
            for path, _, is_written in uses(node):
                if is_written:
                    made.setdefault(path)
        inside = {each for node in (*step.region, *step.removed) for each in ast.walk(node)}
        read = {
            path
            for path, node, is_written in _uses_everywhere(self._scope.node)
            if not is_written and node not in inside
        }
        output = self._model_output()
        found = [path for path in made if (path in read or path == output) and path != step.loss_name]
        return (*found, step.loss_name)

    def _model_output(self) -> str | None:
        for node in self._nodes:
            for each in ast.walk(node):
                if not isinstance(each, ast.Assign) or not isinstance(each.value, ast.Call):
                    continue
                if path_of(each.value.func) in set(self._step.models):
                    return path_of(each.targets[0])
        return None


def _is_called_by(node: ast.expr, parent: ast.AST) -> bool:
    return isinstance(parent, ast.Call) and parent.func is node


def _is_definition(owner: Scope, path: str) -> bool:
    return any(isinstance(each, Function | ast.ClassDef | ast.alias) for each in owner.bindings.get(path, ()))


def _uses_everywhere(scope: ast.AST) -> list[tuple[str, ast.expr, bool]]:
    """Uses in a scope and in the functions inside of it."""
    found = []
    for each in ast.walk(scope):
        path = path_of(each)
        if path is not None and isinstance(each, ast.Name | ast.Attribute):
            found.append((path, each, not isinstance(each.ctx, ast.Load)))
    return found  # type: ignore[return-value]


def _name_of_part(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    assert isinstance(node, ast.Subscript)
    assert isinstance(node.slice, ast.Constant)
    value = node.slice.value
    return value if isinstance(value, str) else f"item_{value!r}"


def _attributes(paths: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in paths:
        name = path.removeprefix("self.").lstrip("_") or "part"
        while name in _TAKEN or name in found.values():
            name += "_"
        found[path] = name
    return found

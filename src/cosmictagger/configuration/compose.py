"""Composing a configuration from the command line, with hydra."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from itertools import product
from typing import Any

from hydra import compose, initialize
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from cosmictagger.configuration.data import Generated, Real, Synthetic
from cosmictagger.configuration.framework import Tensorflow, Torch
from cosmictagger.configuration.mode import Inference, Iotest, Train, Visualize
from cosmictagger.configuration.network import PRESETS, Network
from cosmictagger.configuration.recipes import GROUPS, RECIPES
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from cosmictagger.configuration.words import accepted, check_form, check_hydra, field_names, suggestion
from cosmictagger.errors import ConfigurationError

MEMBERS: dict[str, dict[str, Any]] = {
    "run": {"base_run": Run(id=MISSING)},
    "mode": {"train": Train(), "iotest": Iotest(), "inference": Inference(), "visualize": Visualize()},
    "data": {"real": Real(), "synthetic": Synthetic(), "generated": Generated()},
    "framework": {"torch": Torch(), "tensorflow": Tensorflow()},
    "network": dict(PRESETS),
}
"""The members of each group: what ``GROUP=`` accepts."""

_NOISE = ("object_type=", "reference_type=", "full_key:", "To append", "Config search path", "provider=", "See https:")


def configuration(overrides: Sequence[str], recipe: str = "config") -> Configuration:
    """Compose a recipe and overrides; errors of hydra become one line."""
    check_form(overrides)
    check_hydra(overrides)
    try:
        composed = _composed(overrides, recipe)
        if OmegaConf.is_missing(composed.run, "id"):
            raise ConfigurationError("run.id is missing. It names the run and its folder: use run.id=NAME.")
        wanted, filled = composed.network.data_format, composed.data.data_format
        if wanted not in (filled, Network().data_format):
            raise ConfigurationError("network.data_format follows data.data_format. Set that instead.")
        composed.network.data_format = filled
        config: Any = OmegaConf.to_object(composed)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigurationError(_one_line(error) + suggestion(overrides, known_names(), MEMBERS)) from None
    for name in _added(config):
        raise ConfigurationError(
            f"No field named {name}. Fields can be set, but not added.{suggestion(overrides, known_names(), MEMBERS)}"
        )
    return config  # type: ignore[no-any-return]


def _composed(overrides: Sequence[str], recipe: str, *, hydra: bool = False) -> DictConfig:
    if recipe not in RECIPES:
        raise ConfigurationError(f"No recipe named {recipe!r}. Choose one of: {', '.join(RECIPES)}.")
    store_groups()
    GlobalHydra.instance().clear()
    with initialize(version_base="1.3", config_path=None):
        return compose(recipe, overrides=accepted(overrides), return_hydra_config=hydra)


def shown(
    what: str, overrides: Sequence[str], recipe: str = "config", *, package: str | None = None, resolve: bool = False
) -> str:
    """What hydra's ``--cfg`` shows: the configuration of the ``job``, that of ``hydra``, or ``all``."""
    check_form(overrides)
    try:
        composed = _composed(overrides, recipe, hydra=what != "job")
        chosen = OmegaConf.select(composed, package) if package else composed.hydra if what == "hydra" else composed
        if chosen is None:
            raise ConfigurationError(f"--package {package} names nothing in this configuration.")
        return OmegaConf.to_yaml(chosen, resolve=resolve) if OmegaConf.is_config(chosen) else f"{chosen}\n"
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigurationError(_one_line(error) + suggestion(overrides, known_names(), MEMBERS)) from None


def sweeps(overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of each job of ``--multirun``: all combinations of the listed values."""
    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    except HydraException as error:
        raise ConfigurationError(_one_line(error)) from None
    choices = []
    for word, each in zip(overrides, parsed, strict=True):
        if each.is_sweep_override():
            choices.append([f"{each.get_key_element()}={value}" for value in each.sweep_string_iterator()])
        else:
            choices.append([word])
    return [list(words) for words in product(*choices)]


def known_names() -> set[str]:
    """All groups and fields, of every member."""
    own = {"output_dir", *MEMBERS}
    return own.union(*(field_names(each, group) for group, members in MEMBERS.items() for each in members.values()))


def resolved_lines(config: Configuration) -> list[str]:
    """The configuration as ``key......: value``, sorted by key."""
    flat = _flat(OmegaConf.to_container(OmegaConf.structured(config), resolve=True, enum_to_str=True))
    return [f"{key:.<30}: {value}" for key, value in sorted(flat.items())]


def store_groups() -> None:
    """Register groups and recipes with hydra."""
    store = ConfigStore.instance()
    # Groups stay open here: hydra cannot replace a default member by a sibling class.
    store.store(name="schema", node=Configuration(**dict.fromkeys(GROUPS, MISSING)))
    for group, members in MEMBERS.items():
        for name, node in members.items():
            store.store(group=group, name=name, node=node)
    for name, recipe in RECIPES.items():
        groups = {**GROUPS, **recipe.groups}
        defaults = ["schema", *({group: member} for group, member in groups.items()), "_self_"]
        store.store(name=name, node={"defaults": defaults, **recipe.values})


def _added(group: Any, prefix: str = "") -> Iterator[str]:
    """Fields that were added with hydra's plus sign."""
    known = {each.name for each in fields(group)}
    for name, value in vars(group).items():
        if name not in known:
            yield f"{prefix}{name}"
        elif is_dataclass(value):
            yield from _added(value, f"{prefix}{name}.")


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(tree, dict) or not tree:
        return {prefix.removesuffix("."): tree}
    return {key: value for name, part in tree.items() for key, value in _flat(part, f"{prefix}{name}.").items()}


def _one_line(error: Exception) -> str:
    """The message of hydra or omegaconf in one line, with its cause."""
    parts = [str(error), *([str(error.__cause__)] if error.__cause__ is not None else [])]
    lines = [line.strip() for part in parts for line in part.splitlines()]
    kept = list(dict.fromkeys(line for line in lines if line and not line.startswith(_NOISE)))
    # Hydra lists the members of a group below a colon, one in each line.
    first = next((number + 1 for number, line in enumerate(kept) if line.endswith(":")), len(kept))
    sentences = [*kept[: first - 1], " ".join(filter(None, (kept[first - 1], ", ".join(kept[first:]))))]
    return " ".join(each if each.endswith((".", "?")) else f"{each}." for each in sentences)

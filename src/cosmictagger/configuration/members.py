"""Fields that say something else than the member of their group that was chosen."""

from __future__ import annotations

from collections.abc import Iterator

from cosmictagger.configuration.data import Synthetic
from cosmictagger.configuration.root import Configuration


def members(config: Configuration) -> Iterator[str]:
    """Refusals of names that do not fit."""
    if not config.run.id.strip():
        yield "run.id is empty. It names the run and its folder: say run.id=NAME."
    mode, framework, data = config.mode, config.framework, config.data
    if mode.name is not (wanted := type(mode)().name):
        yield f"mode.name={mode.name.name} does not fit mode={wanted.name}. Say mode={mode.name.name}."
    if framework.name != (name := type(framework)().name):
        yield f"framework.name={framework.name} does not fit framework={name}. Leave it out."
    if data.synthetic is not isinstance(data, Synthetic):
        yield f"data.synthetic={str(data.synthetic).lower()} does not fit the kind of data. Say data=synthetic, generated or real."

"""The rule about fields that contradict the chosen member of their group."""

from __future__ import annotations

from collections.abc import Iterator

from cosmictagger.configuration.data import Synthetic
from cosmictagger.configuration.root import Configuration


def members(config: Configuration) -> Iterator[str]:
    """Refuse names that contradict the chosen member."""
    if not config.run.id.strip():
        yield "run.id is empty. It names the run and its folder: use run.id=NAME."
    mode, framework, data = config.mode, config.framework, config.data
    if mode.name is not (wanted := type(mode)().name):
        yield f"mode.name={mode.name.name} does not fit mode={wanted.name}. Use mode={mode.name.name}."
    if framework.name != (name := type(framework)().name):
        yield f"framework.name={framework.name} does not fit framework={name}. Leave it out."
    if data.synthetic is not isinstance(data, Synthetic):
        yield (
            f"data.synthetic={str(data.synthetic).lower()} does not fit the kind of data. "
            "Use data=synthetic, generated or real."
        )

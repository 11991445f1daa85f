"""The loader that uses the card's media pipeline if there is one, which is never the case here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NoReturn

from torch.utils.data import DataLoader

_FALLBACK = "DATALOADER_FALLBACK_EN"


class HabanaDataLoader:
    """torch's DataLoader with the same arguments; ``channels_last`` is for the card's pipeline and dropped.

    As in the vendor's package, DATALOADER_FALLBACK_EN set to an empty text forbids the fallback, which then raises.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if os.environ.get(_FALLBACK, "1") == "":
            raise ImportError(
                f"The media pipeline needs the card, and {_FALLBACK} is empty, which forbids torch's loader. Unset it."
            )
        kwargs.pop("channels_last", None)
        print("HabanaDataLoader: no media pipeline found; torch's DataLoader is used.")
        self.dataloader: DataLoader[Any] = DataLoader(*args, **kwargs)
        self._iterator: Iterator[Any] | None = None

    def __iter__(self) -> HabanaDataLoader:
        self._iterator = iter(self.dataloader)
        return self

    def __next__(self) -> Any:
        if self._iterator is None:
            self._iterator = iter(self.dataloader)
        return next(self._iterator)

    def __len__(self) -> int:
        return len(self.dataloader)


def fetch_habana_unet_loader(imgs: Any, lbls: Any, batch_size: int, mode: str, **kwargs: Any) -> NoReturn:
    """Raise an error: this loader needs the card's media pipeline."""
    raise NotImplementedError("fetch_habana_unet_loader needs the card's media pipeline. Use torch's DataLoader.")

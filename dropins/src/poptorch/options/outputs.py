"""Which tensors come back to the host."""

from __future__ import annotations

from typing import Self

from poptorch._errors import require
from poptorch._logging import logger
from poptorch._options_impl import OptionsDict
from poptorch.enums import OutputMode


class OutputOptions(OptionsDict):
    """The part of the options that says what one call returns."""

    def outputMode(self, output_mode: OutputMode, output_return_period: int | None = None) -> Self:
        """Which outputs of a call come back; EveryN needs a period."""
        period = _checked_period(output_mode, output_return_period)
        return self.set(output_mode=int(output_mode), output_return_period=period)

    def anchorMode(self, anchor_mode: OutputMode, anchor_return_period: int | None = None) -> Self:
        """What outputMode was called before PopTorch 3."""
        return self.outputMode(anchor_mode, anchor_return_period)

    def defaultOutputMode(self) -> bool:
        """Whether the mode is the default: Final in training, All in inference."""
        return bool(self.output_mode == OutputMode.Default)

    def anchorTensor(
        self,
        short_name: str,
        long_name: str,
        output_mode: OutputMode | None = None,
        output_return_period: int | None = 1,
    ) -> None:
        """Also return the tensor of this long name, under the short one."""
        self.checkIsFrozen("anchored_tensors")
        require(
            isinstance(short_name, str) and isinstance(long_name, str),
            f"anchorTensor takes two names, not {short_name!r} and {long_name!r}.",
        )
        period = 1
        if output_mode is not None:
            is_every_n = output_mode is OutputMode.EveryN
            period = _checked_period(output_mode, output_return_period if is_every_n else None)
        self.anchored_tensors[short_name] = [long_name, output_mode is None, output_mode, period]


def _checked_period(output_mode: OutputMode, period: int | None) -> int:
    require(isinstance(output_mode, OutputMode), f"The output mode must be a poptorch.OutputMode, not {output_mode!r}.")
    if output_mode is OutputMode.EveryN:
        if not isinstance(period, int) or period < 1:
            raise AssertionError(f"OutputMode.EveryN needs a period, a whole number of at least 1, not {period!r}.")
        return period
    if period is not None:
        logger.info("The output return period %s is ignored: it matters only with OutputMode.EveryN.", period)
    return 1

"""The IPU that `useIpuModel` pretends to have: what a program would need there, and how fast it would be."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from poptorch._errors import allocation_error
from poptorch._logging import logger
from poptorch._observation.profile import engine_options_of, profile_directory
from poptorch._options.execution import uses_ipu_model, uses_small_ipu_model
from poptorch.options import Options

if TYPE_CHECKING:
    from pilotage.engine import BoundCall, DeviceModel, Executor, Report

__all__ = ["IpuModel", "ipu_model_of", "out_of_memory"]

_MODELS = {"ipu1": "mk1", "ipu2": "mk2", "ipu21": "bow"}
_TILES_OF_THE_SMALL_MODEL = 4


class IpuModel:
    """Predicts a program on an IPU once it is compiled."""

    def __init__(self, name: str, options: Options, directory: Path | None) -> None:
        asked = engine_options_of(options)
        self._name = name
        self._is_small = uses_small_ipu_model(options)
        self._is_chosen = uses_ipu_model(options)
        """Whether the program pretends to run on it; otherwise it is predicted for the profile only."""
        self._allows_out_of_memory = str(asked.get("debug.allowOutOfMemory", "false")).lower() == "true"
        self._directory = directory
        """Where the report is written; None if no profile was requested."""
        self._report: Report | None = None
        self._is_over = False

    @contextmanager
    def noting_modules(self, engine: Executor) -> Iterator[None]:
        """Note the module of each operation that is captured in the block."""
        from pilotage.engine import naming_modules  # Predictions are imported when they are asked for.

        with naming_modules(engine.module):
            yield

    def examine(self, engine: Executor, call: BoundCall) -> None:
        """Predict a new program; raise as Poplar does if it does not fit, unless the options allow that."""
        if self._is_over or self._report is not None:
            return
        from pilotage.engine import predict_program

        try:
            self._report = predict_program(engine, call, self._name, [_model(small=self._is_small)])
        except Exception as error:  # A prediction that fails must not stop a run.
            self._is_over = True
            logger.warning("The program was not predicted: %s", error)
            return
        if self._is_chosen and (message := out_of_memory(self._report)) is not None:
            self._refuse_or_warn(message)

    def after_run(self, engine: Executor, call: BoundCall) -> None:
        """Print the prediction and write the report, after the first run."""
        if self._is_over:
            return
        if self._report is None:
            # A program that was loaded from a file has not been examined.
            self.examine(engine, call)
        if self._report is None:
            return
        self._is_over = True
        if not _speaks_for_all(engine):
            return
        if self._is_chosen and logger.isEnabledFor(logging.WARNING):
            from pilotage.engine import lines_of, show

            show([*lines_of(self._report), ("", ""), (_ADVICE, "faint")])
        if self._directory is not None:
            self._write(self._directory, self._report)

    def _refuse_or_warn(self, message: str) -> None:
        assert self._report is not None
        (device,) = self._report.devices
        is_certain = device.peak_bytes is not None and device.peak_bytes.low > (device.capacity_bytes or 0)
        if not is_certain:
            logger.warning("%s It is only an estimate, and its lower end fits, so the run continues.", message)
        elif self._allows_out_of_memory:
            logger.warning("%s The run continues, because debug.allowOutOfMemory is set.", message)
        else:
            self._report, self._is_over = None, False
            raise allocation_error(f"{message} {_HOW_TO_GO_ON}")

    def _write(self, directory: Path, report: Report) -> None:
        from pilotage.engine import page_of, write_report

        directory.mkdir(parents=True, exist_ok=True)
        write_report(report, directory / "report.json")
        page = directory / "report.html"
        page.write_text(page_of([report]), encoding="utf-8")
        logger.info("The report of the program is in %s", page)


_ADVICE = "`pilotage predict SCRIPT` predicts more changes; enableProfiling() writes this as a page, report.html."
_HOW_TO_GO_ON = (
    "To run it here all the same, call options.enableProfiling(), or set "
    """POPLAR_ENGINE_OPTIONS='{"debug.allowOutOfMemory":"true"}'."""
)


def ipu_model_of(options: Options, name: str, *, training: bool) -> IpuModel | None:
    """The model that these options ask for, or that a profile needs; None if nothing is to be predicted."""
    directory = profile_directory(options, training=training)
    return IpuModel(name, options, directory) if uses_ipu_model(options) or directory is not None else None


def out_of_memory(report: Report) -> str | None:
    """What Poplar says about a program that does not fit its tiles; None if it fits."""
    (device,) = report.devices
    memory = device.memory
    if device.fits or memory is None or memory.tiles is None:
        return None
    stages = memory.by_stage
    ipu = max(stages, key=lambda each: each.peak_bytes).stage if stages else 0
    largest = max(memory.by_category, key=memory.by_category.__getitem__)
    return (
        f"Out of memory: {memory.tiles.max_bytes} bytes used on the fullest tile of IPU {ipu}, but tiles only have "
        f"{memory.tiles.capacity_bytes} bytes of memory. This is predicted for {device.title}, mostly "
        f"{largest} ({memory.by_category[largest]:,} bytes on all tiles together). Smaller micro-batches, half "
        "precision, recomputation or more IPUs need less; `pilotage predict SCRIPT` says how much."
    )


def _speaks_for_all(engine: Executor) -> bool:
    """Whether this process reports for the others, which run the same program."""
    is_first_stage = engine.pipeline_group is None or engine.pipeline_group.stage == 0
    return engine.execution.instance == 0 and is_first_stage


def _model(*, small: bool) -> DeviceModel:
    from pilotage.engine import device_model, with_tiles

    # Checked when the options were read.
    model = device_model(_MODELS[os.environ.get("POPTORCH_IPU_MODEL_VERSION") or "ipu2"])
    return with_tiles(model, _TILES_OF_THE_SMALL_MODEL) if small else model

"""Starts watching this process before the script imports anything."""

from __future__ import annotations

import sys
from types import ModuleType

from pilotage.options import environment
from pilotage.proof.watching.after_import import AfterImport
from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.watch import Watch

__all__ = ["start"]


def start() -> None:
    """Watch this process if its environment says so; torch is imported by the script, or not at all."""
    text = environment.proof()
    if text is None:
        return
    settings = WatchSettings.from_text(text)
    watch = Watch(settings)
    _seed_python(settings.seed)
    watch.follow_end()
    AfterImport(
        {"torch": lambda torch: _watch_torch(watch), "numpy": lambda numpy: _seed_numpy(numpy, settings.seed)}
    ).install()


def _seed_python(seed: int) -> None:
    import random

    random.seed(seed)


def _seed_numpy(numpy: ModuleType, seed: int) -> None:
    numpy.random.seed(seed % 2**32)


def _watch_torch(watch: Watch) -> None:
    """Hook into torch, and into what is built on it as soon as it is imported."""
    import torch

    from pilotage.proof.watching.exchanges import ExchangeWatch
    from pilotage.proof.watching.loaders import LoaderWatch
    from pilotage.proof.watching.modules import ModuleWatch
    from pilotage.proof.watching.optimizers import OptimizerWatch
    from pilotage.proof.watching.precision import PrecisionWatch
    from pilotage.proof.watching.programs import ProgramWatch
    from pilotage.proof.watching.saving import SaveWatch
    from pilotage.proof.watching.shards import follow_loader, follow_partition
    from pilotage.proof.watching.splitting.check import SplitCheck
    from pilotage.proof.watching.updates import UpdateWatch
    from pilotage.proof.watching.wrappers import WrapperWatch

    watch.begin()
    torch.manual_seed(watch.settings.seed)
    optimizers, modules, split = OptimizerWatch(watch), ModuleWatch(watch), SplitCheck(watch)
    loaders, saves = LoaderWatch(watch), SaveWatch(watch)
    programs = ProgramWatch(watch, optimizers, modules, split)
    wrappers = WrapperWatch(watch, programs)
    loaders.split = split
    loaders.install()
    optimizers.install()
    modules.install()
    PrecisionWatch(watch).install()
    saves.install()
    wrappers.install()
    UpdateWatch(watch, optimizers, modules, split).install()
    if torch.distributed.is_available():
        ExchangeWatch(watch).install(torch.distributed)
    watch.summaries.append(lambda: {"imported": [name for name in _PORTS if name in sys.modules]})
    AfterImport(
        {
            "pilotage.runtime.executor": programs.follow_executor,
            "pilotage.execution.walk": programs.follow_walk,
            "pilotage.runtime.compilation": programs.follow_compilation,
            "pilotage.capture.steps": programs.follow_steps,
            "pilotage.devices.cuda": programs.follow_cuda,
            "pilotage.data.loader": lambda module: follow_loader(module, loaders),
            "pilotage.data.partition": lambda module: follow_partition(module, watch.settings.seed),
            "pilotage.door": wrappers.follow_functions("training", "inference"),
            "poptorch._executor.wrapping": wrappers.follow_functions("trainingModel", "inferenceModel"),
            "poptorch._executor.optimizer_link": wrappers.follow_optimizer_link,
            "habana_frameworks.torch.hpu.graphs.wrapping": wrappers.follow_functions("wrap_in_hpu_graph", trains=False),
            "safetensors.torch": lambda module: saves.follow(module, "save_file"),
            "numpy": saves.follow_arrays,
            "pickle": lambda module: saves.follow(module, "dump"),
            **dict.fromkeys(_DEVICES, lambda module: None),
        },
        failed=lambda name, error: _note_failure(watch, name, error),
    ).install()


def _note_failure(watch: Watch, name: str, error: Exception) -> None:
    """The package of a device could not be imported."""
    from pilotage.proof.watching.lines import users_line

    device = _DEVICES.get(name)
    if device is not None:
        text = f"{type(error).__name__}: {error}"[:200]
        watch.note("asked", what="device", device=device, error=text, line=users_line())


_DEVICES = {
    "poptorch": "ipu",
    "habana_frameworks.torch": "hpu",
    "habana_frameworks.torch.core": "hpu",
    "habana_frameworks.torch.hpu": "hpu",
}
"""Packages whose import asks for a device."""


_PORTS = ("poptorch", "habana_frameworks.torch.core", "habana_frameworks.torch.hpu")
"""Modules whose import says that a script was ported."""

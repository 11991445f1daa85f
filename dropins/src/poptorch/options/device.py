"""The device of a program, and when it attaches to it."""

from __future__ import annotations

from enum import Enum
from typing import Self

from pilotage.engine import Check, NonFiniteLoss, OnMismatch, OptionError, PipelineOrder, Tier
from poptorch._errors import require
from poptorch._options_impl import OptionsDict
from poptorch.enums import ConnectionType, SyncPattern


class DeviceOptions(OptionsDict):
    """The part of the options that says where a program runs."""

    def runOn(
        self,
        backend: str | None = None,
        *,
        tier: str | Tier | None = None,
        nonfinite_loss: str | NonFiniteLoss | None = None,
        pipeline: str | PipelineOrder | None = None,
    ) -> Self:
        """Choose Pilotage's backend, its tier, the treatment of NaN losses and the order of a pipeline.

        PopTorch has neither this option nor `check`.
        """
        if backend is not None:
            _check_backend_name(backend)
            self.createOrSet(pilotage_backend=backend)
        if tier is not None:
            self.createOrSet(pilotage_tier=_name_in(Tier, tier, "tier"))
        if nonfinite_loss is not None:
            self.createOrSet(pilotage_nonfinite_loss=_name_in(NonFiniteLoss, nonfinite_loss, "treatment of losses"))
        if pipeline is not None:
            self.createOrSet(pilotage_pipeline=_name_in(PipelineOrder, pipeline, "order of a pipeline"))
        return self

    def check(self, calls: str | int = "first", on_mismatch: str | OnMismatch = OnMismatch.RAISE) -> Self:
        """Compare the ``first`` call with eager PyTorch, or every n calls, or switch that ``off``.

        By default the first call is compared, unless that would take too long. If the results differ by more than
        rounding, ``on_mismatch`` is to ``raise`` or to ``warn``.
        """
        Check.of(calls, on_mismatch)
        return self.createOrSet(pilotage_check=calls, pilotage_on_mismatch=OnMismatch(on_mismatch).value)

    def useIpuModel(self, use_model: bool) -> Self:
        """Run without hardware, on the CPU; overrides POPTORCH_IPU_MODEL."""
        require(isinstance(use_model, bool), f"useIpuModel takes True or False, not {use_model!r}.")
        return self.createOrSet(use_model=use_model)

    def connectionType(self, connection_type: ConnectionType) -> Self:
        """Set when the executor attaches to its device."""
        require(
            isinstance(connection_type, ConnectionType),
            f"The connection type must be a poptorch.ConnectionType, not {connection_type!r}.",
        )
        return self.set(connection_type=int(connection_type))

    def syncPattern(self, sync_pattern: SyncPattern) -> Self:
        """Which IPUs wait for each other."""
        require(
            isinstance(sync_pattern, SyncPattern),
            f"The sync pattern must be a poptorch.SyncPattern, not {sync_pattern!r}.",
        )
        return self.set(sync_pattern=int(sync_pattern))

    def useIpuId(self, ipu_id: int) -> Self:
        """Use the IPU of this number."""
        require(isinstance(ipu_id, int), f"The id of an IPU must be a whole number, not {ipu_id!r}.")
        return self.createOrSet(ipu_id=ipu_id)

    def useOfflineIpuTarget(self, ipu_version: int = 2) -> Self:
        """Compile only, for an IPU of this version."""
        require(isinstance(ipu_version, int), f"The version of an IPU must be a whole number, not {ipu_version!r}.")
        self.connectionType(ConnectionType.Never)
        return self.createOrSet(ipu_version=ipu_version)

    def autoRoundNumIPUs(self, auto_round_num_ipus: bool = True) -> Self:
        """Round the number of IPUs up to a power of two instead of refusing others."""
        return self.set(auto_round_num_ipus=auto_round_num_ipus)

    def setAvailableMemoryProportion(self, available_memory_proportion: dict[str, float]) -> Self:
        """The part of each IPU's memory that convolutions and matrix products may use: {"IPU0": 0.5}."""
        proportions = {}
        for name, proportion in available_memory_proportion.items():
            require(
                isinstance(name, str) and name.startswith("IPU") and name[3:].isdecimal(),
                f"The keys of memory proportions must be names such as 'IPU0', not {name!r}.",
            )
            proportions[int(name[3:])] = proportion
        return self.set(available_memory_proportion=proportions)


def _check_backend_name(backend: str) -> None:
    if not isinstance(backend, str) or not backend:
        raise OptionError(f"The backend is {backend!r}. It must be a name, such as 'cpu' or 'cuda'.")


def _name_in(choices: type[Enum], chosen: object, kind: str) -> str:
    names: list[str] = [each.value for each in choices]
    name = chosen.value if isinstance(chosen, choices) else chosen
    if name not in names:
        raise OptionError(f"No {kind} named {name!r}. Choose one of: {', '.join(names)}.")
    return str(name)

"""A read-only view of the program that an executor has compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from pilotage.errors import NotCompiledError
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.timing import CallTimes
from pilotage.options.choices import Tier
from pilotage.program.program import Program
from pilotage.program.structure import Structure
from pilotage.runtime.session import OptimizerState, Session


class ProgramView:
    """Shows a compiled program; most properties raise before the first compilation."""

    _session: Session | None = None

    rebuild: Callable[[list[Tensor]], Any]
    """Arranges the outputs of a call as forward returns them; None before the first compilation."""

    @property
    def is_compiled(self) -> bool:
        """Whether a program was compiled."""
        return self._session is not None

    @property
    def is_attached(self) -> bool:
        """Whether the program holds its device."""
        return self._session is not None and self._session.state is not None

    @property
    def session(self) -> Session:
        """The compiled program with its state."""
        if self._session is None:
            raise NotCompiledError("Model has not been compiled or has been destroyed. Call it once, or compile() it.")
        return self._session

    @property
    def captured(self) -> Program:
        """The program as it was captured."""
        return self.session.captured

    @property
    def program(self) -> Program:
        """The program in the form that is run."""
        return self.session.program

    @property
    def output_structure(self) -> Structure:
        """How the outputs are nested."""
        return self.session.outputs

    @property
    def chosen_tier(self) -> Tier:
        """The tier that the program started in; a program that is being compiled meanwhile may be in a higher one."""
        return self.session.choice.tier

    @property
    def runs_on_host(self) -> bool:
        """Whether the program runs on the host's processor, which shares its memory with the device."""
        return self.session.choice.capabilities.device.type == "cpu"

    @property
    def has_synthetic_inputs(self) -> bool:
        """Whether the program runs on synthetic inputs instead of the host's."""
        return self.session.synthetic is not None

    @property
    def times(self) -> CallTimes | None:
        """When the parts of the last call were done; None if the device does not report it."""
        return self.session.times

    @property
    def random_streams(self) -> RandomStreams:
        """Where the program's random numbers come from."""
        return self.session.streams

    def weights_on_device(self) -> Mapping[str, Tensor]:
        """The parameters on the device; collective if stages are processes: all of them must call it."""
        weights = self.session.whole_weights()
        return {name: weights[name] for name in self.session.captured.layout.parameters}

    def optimizer_state(self) -> OptimizerState | None:
        """A copy of the optimizer's state, as far as this instance has it."""
        return self.session.optimizer_state()

    def whole_optimizer_state(self) -> OptimizerState | None:
        """A copy of the whole state of the optimizer; collective if it is sharded: all instances must call it."""
        return self.session.whole_optimizer_state()

"""Events of the bridge: compilations, marks, cache hits."""

from __future__ import annotations

from habana_frameworks._emulation.events import EventDispatcher as EventDispatcher
from habana_frameworks._emulation.events import EventId as EventId

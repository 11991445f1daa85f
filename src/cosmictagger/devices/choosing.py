"""Choosing the device: elsewhere, only the checks of a configuration ask for the compute mode."""

from __future__ import annotations

from cosmictagger.configuration.choices import ComputeMode
from cosmictagger.configuration.framework import Tensorflow
from cosmictagger.configuration.root import Configuration
from cosmictagger.devices.base import Device
from cosmictagger.devices.cpu import CpuDevice
from cosmictagger.devices.cuda import CudaDevice
from cosmictagger.devices.gaudi import GaudiDevice
from cosmictagger.devices.graphcore.device import GraphcoreDevice
from cosmictagger.devices.xpu import XpuDevice
from cosmictagger.tensorflow.device import TensorflowDevice


def device_for(config: Configuration) -> Device:
    """The device of the configured framework and compute mode."""
    if isinstance(config.framework, Tensorflow):
        return TensorflowDevice(config.framework, loads_habana=config.run.compute_mode is ComputeMode.HPU)
    match config.run.compute_mode:
        case ComputeMode.CPU:
            return CpuDevice()
        case ComputeMode.GPU | ComputeMode.CUDA:
            return CudaDevice()
        case ComputeMode.XPU | ComputeMode.DPCPP:
            return XpuDevice()
        case ComputeMode.HPU:
            return GaudiDevice()
        case ComputeMode.IPU:
            return GraphcoreDevice()


def environment_for(config: Configuration) -> dict[str, str]:
    """Variables to set before torch or a vendor's package is imported: the configured ones and the device's."""
    configured = {name: str(value) for name, value in config.framework.environment_variables.items()}
    return configured | device_for(config).environment(config)

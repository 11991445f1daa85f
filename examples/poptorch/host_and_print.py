"""A host function inside the graph, printing from the device, and an executable in a file."""

import argparse
import tempfile
from pathlib import Path

import numpy
import torch
from torch import nn

import poptorch


def median_on_host(values: torch.Tensor) -> torch.Tensor:
    """A function that exists only in NumPy."""
    return torch.from_numpy(numpy.median(values.numpy(), axis=1, keepdims=True))


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.median = poptorch.CPU(median_on_host, "median")

    def forward(self, signal):
        response = poptorch.ipu_print_tensor(torch.relu(self.layer(signal)), "response")
        return response > self.median(response)


class Smoother(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weights", torch.tensor([0.25, 0.5, 0.25]))

    def forward(self, signal):
        return nn.functional.conv1d(signal[:, None], self.weights[None, None], padding=1)[:, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=2)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    signal = torch.randn(arguments.batch, 6)

    found = poptorch.inferenceModel(Detector().eval())(signal)
    print(f"above their median: {found.int().tolist()}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "smoother.poptorch"
        poptorch.inferenceModel(Smoother().eval()).compileAndExport(path, signal)
        smoother = poptorch.load(path)
        print(f"smoothed by a program from a file of {path.stat().st_size // 1024} KiB: {smoother(signal)[0].tolist()}")


if __name__ == "__main__":
    main()

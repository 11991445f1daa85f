from __future__ import annotations

import importlib.util

import pytest
import torch

pytest.importorskip("torch_geometric", reason="needs pilotage-dropins[graphs]")

from torch_geometric.data import Data
from torch_geometric.loader import ClusterData

from poptorch_geometric.cluster_loader import FixedSizeClusterLoader
from poptorch_geometric.fixed_size_options import FixedSizeOptions
from poptorch_geometric.neighbor_loader import FixedSizeNeighborLoader

CAN_SAMPLE = any(importlib.util.find_spec(name) for name in ("pyg_lib", "torch_sparse"))
SIZES = FixedSizeOptions(20, 40)


def ring(nodes):
    places = torch.arange(nodes)
    return Data(x=torch.ones(nodes, 2), edge_index=torch.stack([places, (places + 1) % nodes]))


@pytest.mark.skipif(not CAN_SAMPLE, reason="needs pyg-lib or torch-sparse")
def test_neighbourhoods_and_clusters_have_fixed_sizes():
    neighbours = FixedSizeNeighborLoader(ring(12), [2, 2], SIZES, batch_size=2)
    clusters = FixedSizeClusterLoader(ClusterData(ring(12), num_parts=3, log=False), SIZES)
    assert all(batch.x.shape == (20, 2) for loader in (neighbours, clusters) for batch in loader)


@pytest.mark.skipif(CAN_SAMPLE, reason="pyg-lib or torch-sparse is installed")
@pytest.mark.filterwarnings("ignore:Using 'NeighborSampler' without")
def test_without_a_sampler_pytorch_geometric_says_what_is_missing():
    with pytest.raises(ImportError, match="pyg-lib"):
        next(iter(FixedSizeNeighborLoader(ring(12), [2, 2], SIZES)))

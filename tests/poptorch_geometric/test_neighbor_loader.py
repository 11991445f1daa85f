from __future__ import annotations

import importlib.util

import pytest
import torch

import poptorch

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


class Runs(ClusterData):
    """Clusters of consecutive nodes, found without METIS, which needs pyg-lib or torch-sparse."""

    def _metis(self, edge_index, num_nodes):
        return torch.arange(num_nodes) * self.num_parts // num_nodes


def numbered_ring(nodes):
    data = ring(nodes)
    data.x = torch.arange(float(nodes)).unsqueeze(1)
    return data


def test_clusters_are_padded_and_have_masks():
    loader = FixedSizeClusterLoader(Runs(numbered_ring(12), num_parts=3, log=False), SIZES)
    batches = list(loader)
    assert len(batches) == len(loader) == 3
    for number, batch in enumerate(batches):
        assert batch.x.shape == (20, 1)
        assert batch.x[batch.nodes_mask].flatten().tolist() == [4.0 * number + place for place in range(4)]
        assert batch.edge_index[:, batch.edges_mask].tolist() == [[0, 1, 2], [1, 2, 3]]
        assert batch.edge_index.shape == (2, 40)


def test_with_options_clusters_come_in_the_batches_of_one_call():
    clusters = Runs(numbered_ring(12), num_parts=4, log=False)
    options = poptorch.Options().deviceIterations(2)
    loader = FixedSizeClusterLoader(clusters, SIZES, batch_size=1, options=options)
    assert [batch.x.shape for batch in loader] == [(40, 1)] * 2


@pytest.mark.skipif(CAN_SAMPLE, reason="pyg-lib or torch-sparse is installed")
@pytest.mark.filterwarnings("ignore:Using 'NeighborSampler' without")
def test_without_a_sampler_pytorch_geometric_says_what_is_missing():
    with pytest.raises(ImportError, match="pyg-lib"):
        next(iter(FixedSizeNeighborLoader(ring(12), [2, 2], SIZES)))

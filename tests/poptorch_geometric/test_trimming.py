from __future__ import annotations

import pytest
import torch

pytest.importorskip("torch_geometric", reason="needs pilotage-dropins[graphs]")

from torch_geometric.data import Data

from poptorch_geometric.fixed_size_options import FixedSizeOptions
from poptorch_geometric.trimming import trimmed


def ring(nodes):
    places = torch.arange(nodes)
    return Data(x=places.float().unsqueeze(1), edge_index=torch.stack([places, (places + 1) % nodes]))


def test_graphs_that_fit_are_left_alone():
    graphs = [ring(3), ring(4)]
    assert trimmed(graphs, FixedSizeOptions(8, 7), nodes=False, edges=False) == graphs


def test_the_last_nodes_of_the_largest_graph_are_left_out_with_their_edges():
    small, large = trimmed([ring(3), ring(6)], FixedSizeOptions(8, 20), nodes=True, edges=False)
    assert small.num_nodes == 3
    assert large.x.flatten().tolist() == [0.0, 1.0, 2.0, 3.0]
    assert large.edge_index.tolist() == [[0, 1, 2], [1, 2, 3]]


def test_what_may_not_be_left_out_is_an_error():
    with pytest.raises(RuntimeError, match=r"have 6 edges, but only 5 fit"):
        trimmed([ring(6)], FixedSizeOptions(8, 5), nodes=True, edges=False)

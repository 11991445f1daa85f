from __future__ import annotations

import pytest
import torch

pytest.importorskip("torch_geometric", reason="needs pilotage-dropins[graphs]")

from torch_geometric.data import Data, HeteroData

from poptorch_geometric.fixed_size_options import FixedSizeOptions, Sizes, sizes_of

WRITES = ("author", "writes", "paper")


def ring(nodes):
    places = torch.arange(nodes)
    return Data(x=torch.ones(nodes, 1), edge_index=torch.stack([places, (places + 1) % nodes]))


def library(papers, authors):
    data = HeteroData()
    data["paper"].x, data["author"].x = torch.ones(papers, 1), torch.ones(authors, 2)
    data[WRITES].edge_index = torch.zeros(2, papers, dtype=torch.int64)
    return data


def test_sizes_of_a_data_set_hold_its_largest_graphs_and_padding():
    sizes = FixedSizeOptions.from_dataset([ring(nodes) for nodes in (3, 6, 5)], batch_size=3)
    assert (sizes.num_nodes, sizes.num_edges, sizes.num_graphs) == (12, 12, 3)
    assert not sizes.is_hetero()
    assert (sizes.total_num_nodes, sizes.total_num_edges) == (12, 12)


def test_sizes_are_found_for_each_type():
    dataset = [library(3, 5), library(4, 1), library(2, 2)]
    sizes = FixedSizeOptions.from_dataset(dataset, batch_size=3)
    assert sizes.is_hetero()
    assert sizes.num_nodes == {"paper": 8, "author": 8}
    assert sizes.num_edges == {WRITES: 8}
    assert (sizes.total_num_nodes, sizes.total_num_edges) == (16, 8)
    largest = FixedSizeOptions.from_loader(dataset)
    assert largest.num_nodes == {"paper": 5, "author": 6}
    assert largest.to_dict()["num_graphs"] == 2


def test_one_number_holds_for_all_types_and_one_for_each_type_only_for_those():
    assert FixedSizeOptions(9).nodes_of("paper") == 9
    assert FixedSizeOptions(9).num_edges == 72
    sizes = FixedSizeOptions({"paper": 3, "author": 4})
    assert sizes.edges_of(WRITES) == 12
    with pytest.raises(ValueError, match="no number of nodes of the type 'venue', only of"):
        sizes.nodes_of("venue")
    with pytest.raises(ValueError, match="the graph has only one type"):
        sizes.nodes_of(None)


def test_graphs_fit_beside_one_node_of_padding():
    sizes = FixedSizeOptions({"paper": 8, "author": 8}, {WRITES: 7})
    assert sizes.hold(sizes_of(library(3, 5)) + sizes_of(library(4, 2)))
    assert not sizes.hold(sizes_of(library(3, 5)) + sizes_of(library(4, 3)))
    assert not FixedSizeOptions(20, 6).hold(sizes_of(ring(7)))
    assert sizes.hold(Sizes())


@pytest.mark.parametrize("given", [{"num_nodes": 0}, {"num_nodes": 4, "num_graphs": 1}, {"num_nodes": {"paper": 0}}])
def test_a_batch_without_room_for_padding_is_refused(given):
    with pytest.raises(ValueError, match="one of them is padding"):
        FixedSizeOptions(**given)

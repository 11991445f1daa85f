"""Graphs with several types of nodes and edges in batches of fixed size."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import poptorch

pytest.importorskip("torch_geometric", reason="needs pilotage-dropins[graphs]")

from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv

from poptorch_geometric import FixedSizeDataLoader, FixedSizeOptions, FixedSizeStrategy, OverSizeStrategy
from poptorch_geometric.collate import CombinedBatchingCollater, FixedSizeCollater

WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")


def library(papers, authors, seed):
    generator = torch.Generator().manual_seed(seed)
    data = HeteroData()
    data["paper"].x = torch.randn(papers, 3, generator=generator)
    data["author"].x = torch.randn(authors, 2, generator=generator)
    ends = torch.stack([torch.randint(0, size, (papers + 1,), generator=generator) for size in (authors, papers)])
    data[WRITES].edge_index = ends
    data[WRITES].edge_attr = torch.ones(papers + 1, 1)
    data[CITES].edge_index = torch.randint(0, papers, (2, papers), generator=generator)
    data.label = torch.tensor([float(seed)])
    return data


@pytest.fixture
def dataset():
    return [library(3 + seed % 3, 2 + seed % 2, seed) for seed in range(6)]


def test_each_type_is_padded_and_has_its_mask(dataset):
    sizes = FixedSizeOptions.from_dataset(dataset, batch_size=3)
    batches = list(FixedSizeDataLoader(dataset, 3, fixed_size_options=sizes))
    assert len(batches) == 3
    for number, batch in enumerate(batches):
        real = dataset[2 * number : 2 * number + 2]
        for kind in ("paper", "author"):
            mask = batch[kind].nodes_mask
            assert len(mask) == len(batch[kind].x) == sizes.num_nodes[kind]
            assert torch.equal(batch[kind].x[mask], torch.cat([each[kind].x for each in real]))
            assert not batch[kind].x[~mask].any()
            assert batch[kind].batch[mask].max() == 1
        for kind in (WRITES, CITES):
            mask = batch[kind].edges_mask
            assert len(mask) == batch[kind].num_edges == sizes.num_edges[kind]
            assert mask.sum() == sum(each[kind].num_edges for each in real)
            source, _, target = kind
            starts, ends = batch[kind].edge_index[:, ~mask]
            assert not batch[source].nodes_mask[starts].any()
            assert not batch[target].nodes_mask[ends].any()
        assert batch[WRITES].edge_attr.shape == (13, 1)
        assert batch.graphs_mask.tolist() == [True, True, False]
        assert batch.label.tolist() == [2.0 * number, 2.0 * number + 1, 0.0]


def test_one_number_holds_for_every_type(dataset):
    batch = FixedSizeCollater(FixedSizeOptions(20, 30, 3))(dataset[:2])
    assert {kind: batch[kind].num_nodes for kind in batch.node_types} == {"paper": 20, "author": 20}
    assert {kind: batch[kind].num_edges for kind in batch.edge_types} == {WRITES: 30, CITES: 30}


def test_packing_looks_at_every_type(dataset):
    sizes = FixedSizeOptions({"paper": 40, "author": 8}, 60, 7)
    loader = FixedSizeDataLoader(dataset, fixed_size_options=sizes, fixed_size_strategy=FixedSizeStrategy.StreamPack)
    counts = [int(batch.graphs_mask.sum()) for batch in loader]
    assert counts == [3, 2, 1]
    assert all(batch["author"].nodes_mask.sum() <= 7 for batch in loader)


def test_too_large_and_unknown_types_are_refused(dataset):
    small = FixedSizeOptions({"paper": 4, "author": 9}, 60)
    for strategy in (OverSizeStrategy.Error, OverSizeStrategy.TrimNodes):
        loader = FixedSizeDataLoader(dataset[1:], 2, fixed_size_options=small, over_size_strategy=strategy)
        with pytest.raises(RuntimeError, match="have 4 nodes of the type 'paper', but only 3 fit"):
            next(iter(loader))
    with pytest.raises(RuntimeError, match="edges of the type"):
        FixedSizeCollater(FixedSizeOptions(20, 2))(dataset[:1])
    with pytest.raises(ValueError, match="no number of nodes of the type 'author'"):
        FixedSizeCollater(FixedSizeOptions({"paper": 9}, 60))(dataset[:1])


def test_batches_of_one_call_are_joined_type_by_type(dataset):
    collate = CombinedBatchingCollater(1, FixedSizeCollater(FixedSizeOptions(9, 12)))
    joined = collate(dataset[:2])
    assert joined["paper"].x.shape == (18, 3)
    assert joined[CITES].edge_index.shape == (4, 12)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = HeteroConv({WRITES: SAGEConv((2, 3), 4), CITES: SAGEConv(3, 4)}, aggr="sum")
        self.head = nn.Linear(4, 1)

    def forward(self, papers, authors, writes, cites, mask):
        found = self.layer({"paper": papers, "author": authors}, {WRITES: writes, CITES: cites})["paper"]
        squares = self.head(found).square().flatten()
        loss = torch.where(mask, squares, torch.zeros_like(squares)).sum() / mask.sum()
        return poptorch.identity_loss(loss, reduction="none")


@pytest.mark.filterwarnings("ignore:There exist node types")
@pytest.mark.slow
def test_a_network_trains_on_padded_graphs_as_on_real_ones(dataset):
    model = Network()
    reference = copy.deepcopy(model)
    options = poptorch.Options().showCompilationProgressBar(False)
    sizes = FixedSizeOptions.from_dataset(dataset, batch_size=2)
    training = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.1))
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.1)
    for data, batch in zip(dataset, FixedSizeDataLoader(dataset, 2, fixed_size_options=sizes), strict=True):
        loss = training(*parts(batch), batch["paper"].nodes_mask)
        expected = reference(*parts(data), torch.ones(data["paper"].num_nodes, dtype=torch.bool))
        optimizer.zero_grad()
        expected.backward()
        optimizer.step()
        torch.testing.assert_close(loss, expected.detach(), rtol=1e-5, atol=1e-5)
    for name, parameter in reference.named_parameters():
        torch.testing.assert_close(model.get_parameter(name).data, parameter.data, rtol=1e-4, atol=1e-5)


def parts(data):
    return data["paper"].x, data["author"].x, data[WRITES].edge_index, data[CITES].edge_index

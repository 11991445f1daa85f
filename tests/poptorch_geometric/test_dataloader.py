from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import poptorch

geometric = pytest.importorskip("torch_geometric", reason="needs pilotage-dropins[graphs]")

from torch_geometric.data import Data  # noqa: E402
from torch_geometric.nn import GCNConv, SumAggregation, global_add_pool  # noqa: E402

from poptorch_geometric import (  # noqa: E402
    CustomFixedSizeDataLoader,
    DataLoader,
    FixedSizeDataLoader,
    FixedSizeOptions,
    FixedSizeStrategy,
    OverSizeStrategy,
    TrainingStepper,
    set_aggregation_dim_size,
)
from poptorch_geometric.pyg_dataloader import FixedSizeDataLoader as SecondName  # noqa: E402

GRAPHS = 4


def graph(nodes, seed):
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, nodes, (2, 2 * nodes), generator=generator)
    loops = torch.arange(nodes).repeat(2, 1)
    return Data(
        x=torch.randn(nodes, 3, generator=generator),
        edge_index=torch.cat([edges, loops], 1),
        y=torch.tensor([seed % 2]),
    )


@pytest.fixture
def dataset():
    return [graph(3 + seed % 4, seed) for seed in range(12)]


def shapes(batch):
    return {name: tuple(value.shape) for name, value in batch.to_dict().items() if isinstance(value, torch.Tensor)}


def test_every_batch_has_the_same_shapes_and_masks_of_what_is_real(dataset):
    sizes = FixedSizeOptions.from_dataset(dataset, batch_size=GRAPHS)
    batches = list(FixedSizeDataLoader(dataset, batch_size=GRAPHS, fixed_size_options=sizes))
    assert len(batches) == 4
    assert all(shapes(batch) == shapes(batches[0]) for batch in batches)
    for number, batch in enumerate(batches):
        real = dataset[3 * number : 3 * number + 3]
        assert batch.nodes_mask.sum() == sum(each.num_nodes for each in real)
        assert batch.edges_mask.sum() == sum(each.num_edges for each in real)
        assert batch.graphs_mask.tolist() == [True] * 3 + [False]
        assert torch.equal(batch.x[batch.nodes_mask], torch.cat([each.x for each in real]))
        assert batch.num_graphs == GRAPHS
        padded = batch.edge_index[:, ~batch.edges_mask]
        assert not batch.nodes_mask[padded].any()


def test_packing_fills_batches_in_order(dataset):
    sizes = FixedSizeOptions(num_nodes=16, num_edges=60, num_graphs=6)
    loader = FixedSizeDataLoader(dataset, fixed_size_options=sizes, fixed_size_strategy=FixedSizeStrategy.StreamPack)
    batches = list(loader)
    assert [int(batch.graphs_mask.sum()) for batch in batches] == [3, 3, 3, 3]
    assert len(loader) == len(batches)
    assert all(batch.x.shape == (16, 3) for batch in batches)


def test_too_large_graphs_are_refused_or_trimmed(dataset):
    sizes = FixedSizeOptions(num_nodes=8, num_edges=9, num_graphs=GRAPHS)
    with pytest.raises(RuntimeError, match=r"have 12 nodes, but only 7 fit.*OverSizeStrategy\.TrimNodes"):
        next(iter(FixedSizeDataLoader(dataset, GRAPHS, fixed_size_options=sizes)))
    trimming = OverSizeStrategy.TrimNodesAndEdges
    batch = next(iter(FixedSizeDataLoader(dataset, GRAPHS, fixed_size_options=sizes, over_size_strategy=trimming)))
    assert batch.x.shape == (8, 3)
    assert batch.edge_index.shape == (2, 9)
    assert batch.nodes_mask.sum() == 7
    with pytest.raises(RuntimeError, match="edges"):
        next(
            iter(
                FixedSizeDataLoader(
                    dataset, GRAPHS, fixed_size_options=sizes, over_size_strategy=OverSizeStrategy.TrimNodes
                )
            )
        )


def test_sizes_that_cannot_be_are_refused(dataset):
    with pytest.raises(ValueError, match="one of them is padding"):
        FixedSizeOptions(4, num_graphs=1)
    with pytest.raises(ValueError, match="one of them is padding"):
        FixedSizeOptions({"paper": 3, "author": 0})
    with pytest.raises(ValueError, match="num_graphs=9"):
        FixedSizeDataLoader(dataset, 9, fixed_size_options=FixedSizeOptions(40, num_graphs=4))


def test_older_names_give_the_same_batches(dataset):
    custom = next(iter(CustomFixedSizeDataLoader(dataset, num_nodes=20, batch_size=3, num_edges=60)))
    sizes = FixedSizeOptions(20, 60, 3)
    plain = next(iter(SecondName(dataset, 3, fixed_size_options=sizes)))
    assert shapes(custom) == shapes(plain)
    found = FixedSizeOptions.from_loader(FixedSizeDataLoader(dataset, 3, fixed_size_options=sizes))
    assert (found.num_nodes, found.num_edges, found.num_graphs) == (21, 61, 4)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = GCNConv(3, 8, add_self_loops=False), GCNConv(8, 8, add_self_loops=False)
        self.pool, self.head = SumAggregation(), nn.Linear(8, 2)

    def forward(self, x, edge_index, batch, y, graphs_mask):
        x = torch.relu(self.first(x, edge_index))
        x = torch.relu(self.second(x, edge_index))
        scores = self.head(self.pool(x, batch))
        losses = nn.functional.cross_entropy(scores, y.long(), reduction="none")
        loss = torch.where(graphs_mask, losses, torch.zeros_like(losses)).sum() / graphs_mask.sum()
        return scores, poptorch.identity_loss(loss, reduction="none")


def parts(batch):
    return batch.x, batch.edge_index, batch.batch, batch.y, batch.graphs_mask


@pytest.mark.slow
def test_a_network_trains_on_padded_batches_as_eager_pytorch_does_on_real_graphs(dataset):
    model = set_aggregation_dim_size(Network(), GRAPHS)
    reference = copy.deepcopy(model)
    options = poptorch.Options().showCompilationProgressBar(False)
    sizes = FixedSizeOptions.from_dataset(dataset, batch_size=GRAPHS)
    loader = FixedSizeDataLoader(dataset, GRAPHS, fixed_size_options=sizes, options=options)
    training = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.1))
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.1)
    for number, batch in enumerate(loader):
        _, loss = training(*parts(batch))
        real = geometric.data.Batch.from_data_list(dataset[3 * number : 3 * number + 3])
        optimizer.zero_grad()
        x = torch.relu(reference.first(real.x, real.edge_index))
        x = torch.relu(reference.second(x, real.edge_index))
        expected = nn.functional.cross_entropy(reference.head(global_add_pool(x, real.batch, 3)), real.y)
        expected.backward()
        optimizer.step()
        torch.testing.assert_close(loss.squeeze(), expected.detach(), rtol=1e-5, atol=1e-5)
    for name, parameter in reference.named_parameters():
        torch.testing.assert_close(model.get_parameter(name).data, parameter.data, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_stepper_compares_host_and_program(dataset):
    sizes = FixedSizeOptions.from_dataset(dataset, batch_size=GRAPHS)
    batch = next(iter(FixedSizeDataLoader(dataset, GRAPHS, fixed_size_options=sizes)))
    options = poptorch.Options().showCompilationProgressBar(False)
    stepper = TrainingStepper(set_aggregation_dim_size(Network(), GRAPHS), options=options)
    stepper.run(3, *parts(batch))


def test_graphs_of_equal_size_are_loaded_as_pytorch_geometric_does():
    graphs = [graph(4, seed) for seed in range(6)]
    batches = list(DataLoader(graphs, batch_size=2))
    assert len(batches) == 3
    assert torch.equal(batches[0].x, torch.cat([graphs[0].x, graphs[1].x]))
    assert batches[0].batch.tolist() == [0] * 4 + [1] * 4

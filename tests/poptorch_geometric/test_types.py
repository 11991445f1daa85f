from __future__ import annotations

import pytest
import torch

import poptorch

pytest.importorskip("torch_geometric", reason="needs pilotage-dropins[graphs]")

from torch_geometric.data import Batch, Data, HeteroData

from poptorch_geometric import PostLayerMasker, PreLayerMasker, PyGArgsParser, make_exclude_keys
from poptorch_geometric.collate import CombinedBatchingCollater, FixedSizeCollater
from poptorch_geometric.fixed_size_options import FixedSizeOptions
from poptorch_geometric.subgraphs import FixedSizeSubgraphs
from poptorch_geometric.transforms import PadToFixedSize


def small():
    return Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.ones(1, 2), name="pair")


def test_graphs_are_taken_apart_in_the_order_of_names_and_rebuilt():
    parser, data = PyGArgsParser(), small()
    assert [tuple(each.shape) for each in parser.yieldTensors(data)] == [(1, 2), (2, 1), (2, 3)]
    rebuilt = parser.reconstruct(data, iter([each + 1 for each in parser.yieldTensors(data)]))
    assert torch.equal(rebuilt.x, data.x + 1)
    assert rebuilt.name == "pair"
    assert torch.equal(data.x, torch.ones(2, 3))


def test_batches_and_graphs_with_several_types_are_rebuilt_too():
    parser = PyGArgsParser()
    batch = Batch.from_data_list([small(), small()])
    rebuilt = parser.reconstruct(batch, parser.yieldTensors(batch))
    assert rebuilt.num_graphs == 2
    assert torch.equal(rebuilt.batch, batch.batch)
    hetero = HeteroData()
    hetero["paper"].x = torch.ones(2, 1)
    hetero["author"].x = torch.zeros(3, 1)
    rebuilt = parser.reconstruct(hetero, (each + 5 for each in parser.yieldTensors(hetero)))
    assert rebuilt["author"].x.tolist() == [[5.0]] * 3


@pytest.mark.slow
def test_a_model_takes_and_returns_graphs():
    class Doubling(torch.nn.Module):
        def forward(self, data):
            data.x = 2 * data.x
            return data

    options = poptorch.Options().showCompilationProgressBar(False)
    result = poptorch.inferenceModel(Doubling(), options)(small())
    assert isinstance(result, Data)
    assert torch.equal(result.x, 2 * torch.ones(2, 3))


def test_attributes_are_padded_by_their_kind():
    sizes = FixedSizeOptions(4, 3, 3, node_pad_value=7.0, edge_pad_value=8.0, pad_graph_defaults={"name": "none"})
    batch = FixedSizeCollater(sizes, add_masks_to_batch=True, exclude_keys=["nothing"])([small()])
    assert batch.x[2:].tolist() == [[7.0] * 3] * 2
    assert batch.edge_attr[1:].tolist() == [[8.0] * 2] * 2
    assert batch.name == ["pair", "none", "none"]
    assert batch.edge_index.tolist() == [[0, 2, 2], [1, 2, 2]]
    with pytest.raises(RuntimeError, match="num_graphs=4"):
        FixedSizeCollater(sizes)([small(), small(), small()])


def test_batches_of_one_call_are_joined():
    collate = CombinedBatchingCollater(1, FixedSizeCollater(FixedSizeOptions(4, 3, 2)))
    joined = collate([small(), small()])
    assert joined.x.shape == (8, 3)
    assert joined.edge_index.shape == (4, 3)


def test_single_graphs_and_subgraphs_of_a_loader_are_padded():
    sizes = FixedSizeOptions(4, 3)
    padded = PadToFixedSize(sizes)(small())
    assert padded.nodes_mask.tolist() == [True, True, False, False]
    loader = FixedSizeSubgraphs([small(), small()], sizes)
    assert len(loader) == 2
    assert all(batch.x.shape == (4, 3) for batch in loader)


def test_with_options_an_item_has_the_batches_of_one_call():
    options = poptorch.Options().deviceIterations(2)
    loader = FixedSizeSubgraphs([small()] * 5, FixedSizeOptions(4, 3), options=options)
    assert len(loader) == 2
    items = list(loader)
    assert [item.x.shape for item in items] == [(8, 3)] * 2
    assert items[0].edge_index.tolist() == [[0, 2, 2], [1, 2, 2]] * 2
    with pytest.raises(AttributeError, match="frozen"):
        options.deviceIterations(3)


def test_maskers_keep_padding_out():
    mask, rows = torch.tensor([True, False]), torch.ones(2, 3)
    layer = torch.nn.Linear(3, 1)
    assert PreLayerMasker(torch.nn.Identity())(mask, rows).tolist() == [[1.0] * 3, [0.0] * 3]
    assert PostLayerMasker(layer)(mask, rows)[1].tolist() == [0.0]


def test_keys_are_excluded_by_naming_those_to_include():
    assert set(make_exclude_keys(["x"], small())) == {"edge_index", "edge_attr", "name"}

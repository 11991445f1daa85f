"""Language models that compute their own loss, as those of Hugging Face do, train like eager PyTorch."""

from __future__ import annotations

import copy

import pytest
import torch
from model_outputs import DataclassOutput
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.errors import LossError

TIERS = ["eager", "graph"]


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.1)


class TinyLanguageModel(nn.Module):
    """Sums the cross entropy and divides it by the number of items in all accumulated batches, as transformers does."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(11, 8)
        self.head = nn.Linear(8, 11)

    def forward(self, tokens, labels=None, num_items_in_batch=None):
        logits = self.head(self.embedding(tokens))
        loss = None
        if labels is not None:
            reduction = "mean" if num_items_in_batch is None else "sum"
            loss = functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), reduction=reduction)
            loss = loss if num_items_in_batch is None else loss / num_items_in_batch
        return DataclassOutput(loss=loss, logits=logits, aux_loss=logits.square().mean())


def assert_language_model_trains_like_eager(module, vocabulary, tier):
    twin = copy.deepcopy(module)
    tokens = torch.randint(vocabulary, (4, 9), generator=torch.Generator().manual_seed(2))
    step = pilotage.training(module, sgd(module), backend="cpu", tier=tier)
    result = step(tokens, labels=tokens, num_items_in_batch=torch.full((4,), 992.0)[0])
    optimizer = sgd(twin)
    expected = twin(tokens, labels=tokens, num_items_in_batch=torch.tensor(992.0))
    expected.loss.backward()
    optimizer.step()
    torch.testing.assert_close(result.loss, expected.loss.detach())
    weights, others = dict(module.named_parameters()), dict(twin.named_parameters())
    torch.testing.assert_close(weights, others, rtol=0, atol=1e-7)


@pytest.mark.parametrize("tier", TIERS)
def test_a_language_model_with_a_loss_for_each_item_trains_like_eager(tier):
    assert_language_model_trains_like_eager(TinyLanguageModel(), 11, tier)


def test_a_language_model_without_labels_has_no_loss():
    module = TinyLanguageModel()
    with pytest.raises(LossError, match="labels"):
        pilotage.training(module, sgd(module))(torch.zeros(4, 9, dtype=torch.long))


@pytest.mark.parametrize("tier", TIERS)
def test_gpt2_with_a_number_of_items_trains_like_eager(tier):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    size = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 97, "n_positions": 32}
    dropouts = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**size, **dropouts, use_cache=False))
    module = NamedInputs(model)
    assert_language_model_trains_like_eager(module, 97, tier)


class NamedInputs(nn.Module):
    """Calls a model of transformers with its own names."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, labels=None, num_items_in_batch=None):
        return self.model(input_ids=tokens, labels=labels, num_items_in_batch=num_items_in_batch)

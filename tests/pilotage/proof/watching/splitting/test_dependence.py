import pytest
import torch
from torch import nn
from torch.nn import functional

from pilotage.proof.watching.splitting.dependence import first_dependence
from pilotage.proof.watching.splitting.forward_record import ForwardRecord, computed_types


def dependence(forward, *shape, batch=8):
    torch.manual_seed(0)
    inputs = torch.randn(batch, *shape)
    with ForwardRecord() as record:
        loss = forward(inputs)
    return first_dependence(record.operations, [inputs], loss)


def test_samples_that_do_not_see_each_other_may_be_split():
    model = nn.Sequential(nn.Linear(6, 9), nn.ReLU(inplace=True), nn.LayerNorm(9), nn.Linear(9, 3), nn.LogSoftmax(-1))
    assert dependence(lambda x: model(x).mean(), 6) is None
    assert dependence(lambda x: model(x).sum(), 6) is None


def test_a_softmax_over_the_batch_is_found_with_its_line(line_of):
    model = nn.Linear(6, 3)

    def forward(x):
        scores = model(x)
        scores = functional.log_softmax(scores, dim=0)  # softmax over the batch
        return functional.nll_loss(scores, torch.arange(len(x)) % 3)

    assert dependence(forward, 6) == (line_of("softmax over the batch"), "_log_softmax")


def test_statistics_of_the_batch_are_found_where_samples_meet_them(line_of):
    model = nn.Linear(6, 3)

    def forward(x):
        y = model(x)
        return ((y - y.mean(0)) ** 2).mean()  # centred by the batch

    found = dependence(forward, 6)
    assert found is not None
    assert found[0] == line_of("centred by the batch")


def test_pairs_of_samples_are_found():
    model = nn.Linear(6, 3)

    def forward(x):
        y = model(x)
        return functional.cross_entropy(y @ y.T, torch.arange(len(x)))

    assert dependence(forward, 6) is not None


def test_batch_normalisation_is_known_and_dropout_draws_once():
    model = nn.Sequential(nn.Linear(6, 9), nn.BatchNorm1d(9), nn.Dropout(0.3), nn.Linear(9, 3))
    assert dependence(lambda x: model(x).square().mean(), 6) is None


def test_sequences_in_any_order_of_dimensions_may_be_split():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1)
    assert dependence(lambda x: layer(x.permute(1, 0, 2)).square().mean(), 5, 8) is None
    assert dependence(lambda x: layer(x.permute(1, 0, 2)).flatten(0, 1).square().mean(), 5, 8) is None


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_networks_may_be_split(kind):
    layer = kind(8, 6, batch_first=True)
    assert dependence(lambda x: layer(x)[0].square().mean(), 5, 8) is None


def test_convolutions_reshaped_to_rows_may_be_split():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.MaxPool2d(2), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(4 * 9, 3))
    assert dependence(lambda x: model(x).view(-1).mean(), 1, 8, 8) is None


def test_planes_stacked_along_the_batch_and_split_again_may_be_split():
    model = nn.Conv2d(1, 4, 3)

    def forward(x):
        stacked = model(torch.cat([x[:, :1], x[:, 1:2], x[:, 2:]]))
        first, second, third = stacked.split(len(x))
        return (first * second + stacked[2 * len(x) :] * third).square().mean()

    assert dependence(forward, 3, 6, 6, batch=2) is None
    assert dependence(forward, 3, 6, 6, batch=8) is None


@torch.library.custom_op("proof_test::normalize", mutates_args=())
def normalize(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(0)) * weight


def test_planes_are_normalised_and_dropped_in_the_order_of_their_stack():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.2))

    def forward(x):
        first, second, third = model(torch.cat([x[:, :1], x[:, 1:2], x[:, 2:]])).split(len(x))
        return (first * second + third).square().mean()

    assert dependence(forward, 3, 6, 6, batch=2) is None
    assert dependence(forward, 3, 6, 6, batch=8) is None


def test_batch_normalisation_under_another_name_is_known_by_its_weights():
    norm, inputs = nn.BatchNorm1d(4), torch.randn(8, 4)
    with torch.no_grad(), ForwardRecord() as record:
        loss = normalize(inputs, norm.weight).square().mean()
    assert first_dependence(record.operations, [inputs], loss) is not None
    assert first_dependence(record.operations, [inputs], loss, norm) is None


class SameSizes(nn.Module):
    """Batch, length, width and heads are all eight, with a mask and positions that forward makes."""

    def __init__(self, mixed=None):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(8, 8), nn.Embedding(8, 8)
        self.attention = nn.MultiheadAttention(8, 8, batch_first=True, dropout=0.1)
        self.norm, self.last = nn.LayerNorm(8), nn.Linear(8, 8)
        self.mask = torch.full((8, 8), float("-inf")).triu(1)
        self.mixed = mixed

    def forward(self, tokens):
        x = self.embedding(tokens) + self.positions(torch.arange(8))
        if self.mixed == "samples":
            x = x * functional.softmax(x, dim=0)  # over the samples
        seen, _ = self.attention(x, x, x, attn_mask=self.mask, need_weights=False)
        x = self.norm(x + seen).transpose(0, 1).contiguous()
        if self.mixed == "time-first samples":
            x = x - x.mean(1, keepdim=True)  # over the second dimension
        scores = self.last(x.view(8, 8, 8).permute(1, 0, 2).reshape(64, 8))
        return functional.cross_entropy(scores, tokens.roll(1, 1).reshape(-1))


def dependence_of_tokens(model):
    torch.manual_seed(1)
    tokens = torch.randint(0, 8, (8, 8))
    with ForwardRecord() as record:
        loss = model(tokens)
    return first_dependence(record.operations, [tokens], loss, model)


def test_equal_sizes_of_batch_length_width_and_heads_are_told_apart(line_of):
    assert dependence_of_tokens(SameSizes()) is None
    assert dependence_of_tokens(SameSizes("samples"))[0] == line_of("over the samples")
    assert dependence_of_tokens(SameSizes("time-first samples"))[0] == line_of("over the second dimension")


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("batch_first", [True, False])
def test_recurrent_networks_with_equal_sizes_may_be_split(kind, batch_first):
    layer = kind(8, 8, batch_first=batch_first)

    def forward(x):
        return layer(x if batch_first else x.transpose(0, 1))[0].square().mean()

    assert dependence(forward, 8, 8) is None


def test_images_with_as_many_channels_rows_and_columns_as_samples_may_be_split():
    model = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(8, 8), nn.ReLU(), nn.BatchNorm2d(8))
    weights = torch.linspace(0, 1, 8)
    assert dependence(lambda x: (model(x) * weights).square().mean(), 8, 8, 8) is None
    assert dependence(lambda x: (model(x) * weights).softmax(1).square().mean(), 8, 8, 8) is None
    assert dependence(lambda x: (model(x) * weights).softmax(0).square().mean(), 8, 8, 8) is not None


def test_tables_of_features_are_not_pairs_of_samples():
    model = nn.Linear(8, 8)
    assert dependence(lambda x: (model(x) @ model(x).transpose(1, 2)).square().mean(), 8, 8) is None
    assert dependence(lambda x: (model(x) @ model(x).T).square().mean(), 8) is not None


def test_labels_of_samples_that_forward_makes_may_be_split():
    model = nn.Linear(8, 8)
    assert dependence(lambda x: functional.cross_entropy(model(x), torch.arange(8)), 8) is None
    weights = torch.rand(8)
    assert dependence(lambda x: (functional.mse_loss(model(x), x, reduction="none").mean(1) * weights).sum(), 8) is None


def test_losses_that_are_summed_sample_by_sample_may_be_split():
    model = nn.Linear(6, 3)

    def forward(x):
        return sum(functional.smooth_l1_loss(model(each), each[:3]) for each in x) / len(x)

    assert dependence(forward, 6) is None


def test_samples_in_the_order_of_their_lengths_may_be_split():
    model = nn.Linear(6, 3)

    def forward(x):
        order = x[:, 0].argsort(descending=True)
        return model(x[order]).tanh().square().mean()

    assert dependence(forward, 6) is None


def test_what_is_mixed_before_normalisation_and_dropout_stays_mixed(line_of):
    model = nn.Sequential(nn.Linear(6, 9), nn.BatchNorm1d(9), nn.Dropout(0.3), nn.Linear(9, 3))

    def forward(x):
        x = (x - x.mean(0)) / x.std(0)  # standardised by the batch
        return model(x).square().mean()

    found = dependence(forward, 6)
    assert found is not None
    assert found[0] == line_of("standardised by the batch")


def test_small_differences_between_samples_are_enough():
    """As after the first update of a last layer that began with zeros."""
    model = nn.Linear(6, 3)
    with torch.no_grad():
        model.weight.mul_(1e-3)
    assert dependence(lambda x: functional.log_softmax(model(x), 0)[:, 0].mean(), 6) is not None


def test_mixed_precision_may_be_split():
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8))

    def forward(x):
        with torch.autocast("cpu", torch.bfloat16):
            return model(x).float().square().mean()

    assert dependence(forward, 8) is None


@pytest.mark.parametrize("batch", [[], None])
def test_tensors_that_do_not_agree_on_the_batch_are_not_judged(batch):
    """Time comes first, and no loader says how many samples there are."""
    model, inputs, labels = nn.Linear(6, 3), torch.randn(5, 8, 6), torch.arange(8) % 3
    with ForwardRecord() as record:
        weights = functional.softmax(model(inputs), dim=0)
        loss = functional.cross_entropy(weights.sum(0), labels)
    given = [inputs, labels] if batch is None else batch
    assert first_dependence(record.operations, given, loss, model) is None


def test_a_metric_of_the_batch_beside_the_loss_does_not_count():
    model = nn.Linear(6, 3)

    def forward(x):
        y = model(x)
        functional.softmax(y.detach(), dim=0)
        return y.square().mean()

    assert dependence(forward, 6) is None


def test_an_odd_batch_is_cut_to_two_equal_halves():
    model = nn.Linear(6, 3)
    assert dependence(lambda x: model(x).square().mean(), 6, batch=7) is None
    assert dependence(lambda x: functional.softmax(model(x), 0).square().mean(), 6, batch=7) is not None


def test_nothing_of_the_script_changes():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(inplace=True), nn.Dropout(0.5))
    inputs = torch.randn(6, 4)
    with ForwardRecord() as record:
        loss = model(inputs).mean()
    before = [tensor.clone() for tensor in (inputs, loss, *model.state_dict().values())]
    random = torch.get_rng_state()
    first_dependence(record.operations, [inputs], loss)
    assert all(map(torch.equal, before, (inputs, loss, *model.state_dict().values())))
    assert torch.equal(random, torch.get_rng_state())
    loss.backward()


def test_the_types_of_products_are_counted():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    with ForwardRecord() as record, torch.autocast("cpu", torch.bfloat16):
        model(torch.randn(2, 4))
    assert computed_types(record.operations) == {"bfloat16": 2}


@pytest.mark.parametrize(("over", "expected"), [(1, None), (0, "_log_softmax")])
def test_a_batch_picked_from_a_data_set_by_numbers_is_looked_at_and_not_the_data_set(over, expected):
    torch.manual_seed(0)
    model, data, labels = nn.Linear(6, 3), torch.randn(40, 6), torch.arange(40) % 3
    order = torch.randperm(40)
    with ForwardRecord() as record:
        numbers = order[10:18]
        scores = functional.log_softmax(model(data[numbers]), dim=over)
        loss = functional.nll_loss(scores, labels[numbers])
    found = first_dependence(record.operations, [], loss, model)
    assert (found and found[1]) == expected


def test_the_zeros_of_a_one_hot_vector_are_not_a_batch():
    model = nn.Linear(5, 2)

    def forward():
        states = [functional.one_hot(torch.tensor(place), 5).float().unsqueeze(0) for place in (2, 3)]
        picked = [functional.softmax(model(state), -1).log().gather(1, torch.tensor([[1]])) for state in states]
        return torch.cat(picked).sum()

    with ForwardRecord() as record:
        loss = forward()
    assert first_dependence(record.operations, [], loss, model) is None


class Scored(nn.Module):
    """Scores images, and compares them with their labels by weights that add up to 1 over the batch."""

    def forward(self, images, labels):
        weights = labels / labels.sum()  # weights of the batch
        return (weights * functional.avg_pool2d(images, 2)).sum()


def filled(pixels, batch=4):
    """Images that are filled from a list of the pixels of all of them, which has no rows of samples."""
    flat = torch.zeros(batch * 16)
    places = torch.randperm(len(flat))[: len(pixels)]
    return flat.index_copy_(0, places, pixels).view(batch, 1, 4, 4)


def test_images_that_are_filled_from_one_list_of_pixels_are_the_batch(line_of):
    torch.manual_seed(0)
    pixels, labels = torch.rand(21), torch.rand(13)
    model = Scored()
    with ForwardRecord() as record:
        inputs = filled(pixels), functional.avg_pool2d(filled(labels), 2)
        loss = model(*inputs)
    assert first_dependence(record.operations, [], loss, model) is None
    assert first_dependence(record.operations, [], loss, model, inputs) == (line_of("weights of the batch"), "div")


def test_time_in_front_beside_a_square_mask_is_not_taken_for_the_batch():
    torch.manual_seed(0)
    layer, text = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), torch.randn(40, 3, 8)
    with ForwardRecord() as record:
        inputs = text[:6], torch.triu(torch.full((6, 6), float("-inf")), diagonal=1)
        loss = layer(*inputs).square().mean()
    assert first_dependence(record.operations, [], loss, layer, inputs) is None


def test_time_in_front_of_samples_and_their_targets_is_not_taken_for_the_batch():
    torch.manual_seed(0)
    layer, text = nn.LSTM(8, 8), torch.randn(40, 4, 8)

    class Scored(nn.Module):
        def forward(self, sequences, targets):
            return functional.mse_loss(layer(sequences)[0], targets)

    with ForwardRecord() as record:
        inputs = text[:6], text[1:7]
        loss = Scored()(*inputs)
    assert first_dependence(record.operations, [], loss, layer, inputs) is None

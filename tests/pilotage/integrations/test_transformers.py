"""Hugging Face's models and Trainer, if transformers is installed."""

from __future__ import annotations

import copy

import pytest
import torch

import pilotage
from pilotage.errors import CaptureError, OptionError

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


def gpt2():
    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 16, "vocab_size": 40}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))


def llama():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, num_key_value_heads=2, vocab_size=40))


def bert():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.BertConfig(**sizes, vocab_size=40, max_position_embeddings=16, num_labels=3)
    return transformers.BertForSequenceClassification(config)


def t5():
    torch.manual_seed(0)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 40}
    return transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes, decoder_start_token_id=0))


def mixtral():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.MixtralConfig(**sizes, num_key_value_heads=2, vocab_size=40, num_local_experts=2)
    return transformers.MixtralForCausalLM(config)


def tokens_and_labels(model):
    tokens = torch.randint(0, 40, (3, 10))
    labels = torch.randint(0, 3, (3,)) if isinstance(model, transformers.BertForSequenceClassification) else tokens
    return {"input_ids": tokens, "labels": labels}


@pytest.mark.parametrize("make", [gpt2, llama, bert, t5])
def test_a_model_trains_as_it_is_with_dropout_and_agrees(make):
    model = make()
    theirs = copy.deepcopy(model)
    optimizers = [torch.optim.AdamW(each.parameters(), lr=0.01) for each in (theirs, model)]
    step = pilotage.training(model, optimizers[1], tier="graph", check="first")
    for number in range(3):
        torch.manual_seed(number)
        batch = tokens_and_labels(model)
        state = torch.get_rng_state()
        optimizers[0].zero_grad()
        expected = theirs(**batch).loss
        expected.backward()
        optimizers[0].step()
        torch.set_rng_state(state)
        torch.testing.assert_close(step(**batch).loss, expected.detach(), rtol=1e-4, atol=1e-5)
    for one, other in zip(model.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("make", [gpt2, llama, bert, t5])
def test_a_model_reaches_compiled_code(make, tmp_path):
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    step = pilotage.training(model, optimizer, tier="compiled", cache_directory=tmp_path, check="first")
    first = step(**tokens_and_labels(model)).loss
    assert first.isfinite()
    assert step.record.latest_tier == "compiled"


def samples(count=10):
    generator = torch.Generator().manual_seed(1)
    rows = [torch.randint(0, 40, (12,), generator=generator) for _ in range(count)]
    return [{"input_ids": row, "labels": row.clone()} for row in rows]


def arguments(folder, **changed):
    settings = {"num_train_epochs": 2, "per_device_train_batch_size": 4, "learning_rate": 0.01, "seed": 3}
    quiet = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "use_cpu": True, "logging_steps": 1}
    return transformers.TrainingArguments(output_dir=str(folder), **{**settings, **quiet, **changed})


def trained(kind, folder, **options):
    model = gpt2()
    trainer = kind(model=model, args=arguments(folder), train_dataset=samples(), eval_dataset=samples(4), **options)
    trainer.train()
    return model, trainer


def test_the_trainer_trains_as_that_of_transformers(tmp_path, capfd):
    from pilotage.integrations.transformers import Trainer

    expected, theirs = trained(transformers.Trainer, tmp_path / "theirs")
    found, mine = trained(Trainer, tmp_path / "mine", program={"tier": "graph"})
    assert mine._step().record.updates == 6
    for name, tensor in found.state_dict().items():
        torch.testing.assert_close(tensor, expected.state_dict()[name], rtol=1e-4, atol=1e-5)
    losses = [[entry["loss"] for entry in each.state.log_history if "loss" in entry] for each in (theirs, mine)]
    assert losses[1] == pytest.approx(losses[0], abs=1e-3)
    assert not any("grad_norm" in entry for entry in mine.state.log_history)  # there are no gradients on the host
    assert "has no effect" not in capfd.readouterr().err
    assert mine.evaluate()["eval_loss"] == pytest.approx(theirs.evaluate()["eval_loss"], abs=1e-3)


def test_the_emulated_gaudi_of_the_drop_ins_is_not_chosen_unasked(tmp_path):
    pytest.importorskip("habana_frameworks")
    assert arguments(tmp_path, use_cpu=False).device.type != "hpu"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"gradient_accumulation_steps": 2}, "gradient_accumulation_steps"),
        ({"label_smoothing_factor": 0.1}, "label_smoothing"),
    ],
)
def test_what_the_trainer_cannot_do_is_refused(tmp_path, changed, reason):
    from pilotage.integrations.transformers import Trainer

    with pytest.raises(OptionError, match=f"does not support {reason}"):
        Trainer(model=gpt2(), args=arguments(tmp_path, **changed), train_dataset=samples())


def test_the_cache_of_a_decoder_is_left_out():
    model, tokens = llama(), torch.randint(0, 40, (3, 10))
    assert isinstance(model(input_ids=tokens, labels=tokens).past_key_values, transformers.DynamicCache)
    step = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), tier="graph")
    assert step(input_ids=tokens, labels=tokens).past_key_values is None


def test_routing_in_groups_is_refused_with_its_line_and_a_remedy():
    model, tokens = mixtral(), torch.randint(0, 40, (2, 6))
    step = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), tier="graph", check="first")
    with pytest.raises(CaptureError, match=r"set_experts_implementation\('batched_mm'\)(.|\n)*moe\.py"):
        step(input_ids=tokens, labels=tokens)


def test_routing_by_values_is_captured_as_batched_products():
    model = mixtral()
    model.set_experts_implementation("batched_mm")
    theirs = copy.deepcopy(model)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (theirs, model)]
    step = pilotage.training(model, optimizers[1], tier="graph", check="first")
    for _ in range(2):
        tokens = torch.randint(0, 40, (2, 6))
        optimizers[0].zero_grad()
        theirs(input_ids=tokens, labels=tokens).loss.backward()
        optimizers[0].step()
        step(input_ids=tokens, labels=tokens)
    for one, other in zip(model.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)

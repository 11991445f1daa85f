"""Trains and evaluates a tiny BERT and prints its losses: python tiny_bert.py MODE FOLDER.

MODE is `cpu` (transformers' own Trainer), or one of optimum-habana's: eager, lazy, graphs, bf16.
"""

from __future__ import annotations

import json
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

MODES: dict[str, dict[str, bool]] = {
    "eager": {"use_lazy_mode": False},
    "lazy": {"use_lazy_mode": True},
    "graphs": {
        "use_lazy_mode": True,
        "use_hpu_graphs_for_training": True,
        "use_hpu_graphs_for_inference": True,
    },
    "bf16": {"use_lazy_mode": True, "bf16": True},
}


class Sentences(torch.utils.data.Dataset):
    """Sentences of random words; the label says whether the first word is of the upper half."""

    def __init__(self, seed: int, count: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.words = torch.randint(2, 64, (count, 12), generator=generator)

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        words = self.words[number]
        return {"input_ids": words, "attention_mask": torch.ones_like(words), "labels": (words[0] >= 33).long()}


def main(mode: str, folder: str) -> None:
    set_seed(3)
    common = {
        "output_dir": folder,
        "num_train_epochs": 3,
        "per_device_train_batch_size": 8,
        "per_device_eval_batch_size": 8,
        "learning_rate": 2e-3,
        "optim": "adamw_torch",
        "adam_epsilon": 1e-8,  # optimum-habana's default is 1e-6
        "logging_steps": 4,
        "save_strategy": "no",
        "report_to": [],
        "seed": 3,
    }
    if mode == "cpu":
        arguments, make, more = TrainingArguments(**common, use_cpu=True), Trainer, {}
    else:
        from optimum.habana import GaudiConfig, GaudiTrainer, GaudiTrainingArguments

        arguments = GaudiTrainingArguments(**common, use_habana=True, **MODES[mode])
        make = GaudiTrainer
        more = {
            "gaudi_config": GaudiConfig(
                use_fused_adam=False, use_fused_clip_norm=True, use_torch_autocast=mode == "bf16"
            )
        }
    torch.manual_seed(4)
    config = BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = BertForSequenceClassification(config)
    trainer = make(model=model, args=arguments, train_dataset=Sentences(1, 96), eval_dataset=Sentences(2, 32), **more)
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    logged = [each["loss"] for each in trainer.state.log_history if "loss" in each]
    metrics = trainer.evaluate()
    predicted = trainer.predict(Sentences(2, 32)).predictions
    found = {
        "before": before,
        "training": logged,
        "evaluation": metrics["eval_loss"],
        "predictions": predicted.ravel().tolist(),
        "device": next(model.parameters()).device.type,
    }
    print("RESULT", json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

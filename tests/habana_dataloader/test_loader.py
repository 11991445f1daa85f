"""The vendor's loader without its media pipeline is torch's."""

from __future__ import annotations

import importlib

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from habana_dataloader import HabanaDataLoader, fetch_habana_unet_loader
from habana_dataloader.habana_dataset import ImageFolderWithManifest


def test_batches_are_those_of_torchs_loader(capsys):
    data = TensorDataset(torch.arange(10))
    loader = HabanaDataLoader(data, batch_size=4, channels_last=True)
    assert "torch's DataLoader is used" in capsys.readouterr().out
    assert len(loader) == 3
    for _ in range(2):
        assert [batch.tolist() for (batch,) in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert isinstance(loader.dataloader, DataLoader)


def test_an_empty_variable_forbids_torchs_loader(monkeypatch):
    monkeypatch.setenv("DATALOADER_FALLBACK_EN", "")
    with pytest.raises(ImportError, match="DATALOADER_FALLBACK_EN is empty"):
        HabanaDataLoader(TensorDataset(torch.arange(2)))


def test_the_native_parts_are_refused():
    for name in ("aeon_config", "aeon_transformers", "aeon_manifest", "habana_dl_app"):
        with pytest.raises(ImportError, match="Use torch's DataLoader"):
            importlib.import_module(f"habana_dataloader.{name}")
    with pytest.raises(NotImplementedError, match="media pipeline"):
        fetch_habana_unet_loader([], [], 2, "train")


def test_a_manifest_names_the_pictures_of_a_folder(tmp_path):
    manifest = tmp_path / "manifest.txt"
    manifest.write_text("cats/1.png\ndogs/2.jpg\ndogs/notes.txt\n")
    data = ImageFolderWithManifest(tmp_path, manifest, loader=str, target_transform=lambda target: target + 10)
    assert data.classes == ["cats", "dogs"]
    assert [data[number] for number in range(len(data))] == [
        (str(tmp_path / "cats/1.png"), 10),
        (str(tmp_path / "dogs/2.jpg"), 11),
    ]
    with pytest.raises(FileNotFoundError, match="lists no images"):
        ImageFolderWithManifest(tmp_path, ["dogs/notes.txt"])

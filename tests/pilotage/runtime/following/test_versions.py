from __future__ import annotations

import torch
from torch import nn

from pilotage.runtime.following.versions import HostVersions


def followed(count=20):
    tensors = {f"weight{number}": nn.Parameter(torch.ones(2)) for number in range(count)}
    versions = HostVersions()
    versions.follow(tensors)
    return tensors, versions


def edit(tensor):
    with torch.no_grad():
        tensor.mul_(2)


def test_what_was_written_to_is_named_until_it_is_noted():
    tensors, versions = followed()
    assert versions.edited() == []
    edit(tensors["weight3"])
    edit(tensors["weight17"])
    assert versions.edited() == ["weight3", "weight17"]
    versions.note_some({"weight3"})
    assert versions.edited() == ["weight17"]
    versions.note()
    assert versions.edited() == []


def test_a_look_at_a_few_at_a_time_finds_every_edit_in_the_end():
    tensors, versions = followed()
    edit(tensors["weight19"])
    found = [versions.some_edited() for _ in range(3)]
    assert found == [[], [], ["weight19"]]
    edit(tensors["weight0"])
    assert versions.some_edited() == ["weight0", "weight19"]


def test_a_look_at_a_few_sees_a_load_of_everything_at_once():
    tensors, versions = followed()
    for tensor in tensors.values():
        edit(tensor)
    assert len(versions.some_edited()) == 20


def test_tensors_without_versions_are_left_out():
    with torch.inference_mode():
        silent = torch.ones(2)
    versions = HostVersions()
    versions.follow({"silent": silent})
    with torch.inference_mode():
        silent.mul_(2)
    assert versions.edited() == versions.some_edited() == []

from __future__ import annotations

import os

import pytest

from pilotage.distributed.own_card import take_own_card


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A process of torchrun on a host with four cards, with no choice made."""
    for number in range(4):
        (tmp_path / f"card{number}").mkdir()
    # Set first, so that monkeypatch removes what a test sets.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")

    def start(rank, size):
        for name, value in {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank % 8}.items():
            monkeypatch.setenv(name, str(value))
        return tmp_path

    return start


@pytest.mark.parametrize("rank", range(6))
def test_each_instance_takes_the_next_card_and_too_few_cards_are_shared(host, rank):
    assert take_own_card(host(rank, 6)) == os.environ["CUDA_VISIBLE_DEVICES"] == str(rank % 4)
    assert take_own_card(host(rank, 6)) is None


def test_a_single_process_sees_all_cards(host):
    assert take_own_card(host(0, 1)) is None
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


def test_the_users_choice_is_kept(host, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    assert take_own_card(host(1, 2)) is None
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,3"


def test_a_single_card_is_not_assigned(tmp_path, host):
    host(1, 2)
    (tmp_path / "one" / "card").mkdir(parents=True)
    assert take_own_card(tmp_path / "one") is None
    assert take_own_card(tmp_path / "none") is None

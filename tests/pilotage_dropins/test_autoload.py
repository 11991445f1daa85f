"""What torch calls at the end of its import."""

import importlib

import pytest

from pilotage_dropins import autoload


@pytest.fixture
def imported(monkeypatch):
    """Records imports instead of making them."""
    names = []
    monkeypatch.setattr(importlib, "import_module", names.append)
    for variable in autoload._MODULES:
        monkeypatch.delenv(variable, raising=False)
    return names


def test_without_a_variable_nothing_is_imported(imported, monkeypatch):
    autoload.start()
    monkeypatch.setenv("PT_HPU_AUTOLOAD", "0")
    autoload.start()
    assert imported == []


@pytest.mark.parametrize(
    ("variables", "module"),
    [
        (["PT_HPU_AUTOLOAD"], "habana_frameworks.torch.core"),
        (["PT_HPU_GPU_MIGRATION"], "habana_frameworks.torch.gpu_migration"),
        (["PT_HPU_AUTOLOAD", "PT_HPU_GPU_MIGRATION"], "habana_frameworks.torch.gpu_migration"),
    ],
)
def test_a_variable_starts_the_bridge_and_migration_comes_first(imported, monkeypatch, variables, module):
    for variable in variables:
        monkeypatch.setenv(variable, "1")
    autoload.start()
    assert imported == ["habana_frameworks._emulation", module]


def test_the_vendors_own_package_starts_itself(imported, monkeypatch):
    def refuse(name):
        imported.append(name)
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    monkeypatch.setenv("PT_HPU_AUTOLOAD", "1")
    autoload.start()
    assert imported == ["habana_frameworks._emulation"]

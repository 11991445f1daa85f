import sys

import pytest

from pilotage.proof.watching.after_import import AfterImport


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "watched_good.py").write_text("value = 3\n")
    (tmp_path / "watched_bad.py").write_text("raise ValueError('broken')\n")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield
    for name in ("watched_good", "watched_bad"):
        sys.modules.pop(name, None)


def test_a_function_is_called_once_its_module_was_imported(package):
    seen = []
    AfterImport({"watched_good": lambda module: seen.append(module.value)}).install()
    assert seen == []
    import watched_good

    assert seen == [3]
    assert type(watched_good.__loader__).__name__ == "SourceFileLoader"
    assert watched_good.__spec__.loader is watched_good.__loader__


def test_a_module_that_is_there_already_is_taken_at_once(package):
    import watched_good

    seen = []
    AfterImport({"watched_good": seen.append}).install()
    assert seen == [watched_good]


def test_an_import_that_fails_is_reported_and_fails_as_before(package):
    seen = []
    AfterImport({"watched_bad": seen.append}, failed=lambda name, error: seen.append((name, str(error)))).install()
    with pytest.raises(ValueError, match="broken"):
        import watched_bad  # noqa: F401
    assert seen == [("watched_bad", "broken")]

from collections import Counter

from poptorch._options_impl import OptionsDict
from poptorch.options import Options
from tools.parity.option_meanings import OPTION_MEANINGS, Meaning

STORAGE = {name for name in dir(OptionsDict) if not name.startswith("_")} | {"clone"}
BACKEND_STORAGE = {"checkIsFrozen", "merge", "remove", "update"}
GROUPS = ("TensorLocations", "Distributed", "Jit", "Precision", "Training", "_Popart")


def callable_options(group: object) -> set[str]:
    storage = STORAGE if isinstance(group, OptionsDict) else BACKEND_STORAGE
    names = {name for name in dir(type(group)) if not name.startswith("_")} - storage
    return {name for name in names if callable(getattr(type(group), name))}


def test_every_option_has_one_row():
    options = Options()
    paths = callable_options(options)
    for name in GROUPS:
        paths |= {f"{name}.{option}" for option in callable_options(getattr(options, name))}
    assert Counter(row.path for row in OPTION_MEANINGS) == Counter(paths)


def test_every_row_has_a_text():
    assert all(row.remark.endswith(".") for row in OPTION_MEANINGS)


def test_two_options_are_extensions():
    assert [row.path for row in OPTION_MEANINGS if row.meaning is Meaning.OWN] == ["runOn", "check"]

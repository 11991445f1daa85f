"""The lines that findings name."""

import inspect

from pilotage.proof.watching.lines import users_line


class Base:
    def __init__(self):
        self.line, self.innermost = users_line(self), users_line()


class Own(Base):
    def __init__(self, inner=None):
        self.inner = inner
        super().__init__()


class Holder:
    def __init__(self):
        self.held = Own()


def test_an_object_of_a_class_of_the_script_is_made_where_the_class_is_called():
    made = Own()
    assert made.line == f"{__file__}:{inspect.currentframe().f_lineno - 1}"
    assert made.innermost != made.line


def test_the_constructor_of_another_object_may_make_it():
    source, start = inspect.getsourcelines(Holder)
    assert Holder().held.line == f"{__file__}:{start + len(source) - 1}"

"""A few generated events for several tests."""

import pytest

from cosmictagger.data.generator.event import generate_event


@pytest.fixture(scope="session")
def events():
    return [generate_event(21, entry) for entry in range(12)]

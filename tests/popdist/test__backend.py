from __future__ import annotations

import pytest

import popdist


def test_a_single_instance_needs_no_connection():
    popdist.init()
    popdist.initializeBackend()
    assert popdist.isBackendInitialized()
    popdist.registerDefaultBackend()
    popdist.finalizeBackend()


def test_a_backend_of_another_kind_is_refused():
    with pytest.raises(RuntimeError, match=r"'libmpi\.so' cannot be registered"):
        popdist.registerBackend("libmpi.so")


SCRIPT = """
before = popdist.isBackendInitialized()
popdist.init()
popdist.init()
met = popdist.isBackendInitialized()
popdist.finalizeBackend()
answer([before, met, popdist.isBackendInitialized(), popdist.getNumInstances(), popdist.getNumTotalReplicas()])
"""


@pytest.mark.slow
def test_instances_connect_and_disconnect(poprun):
    assert poprun(SCRIPT, "--num-replicas=4") == [[False, True, False, 2, 4]] * 2

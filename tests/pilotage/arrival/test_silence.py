from concurrent.futures import ThreadPoolExecutor

from pilotage.arrival.silence import is_silent, silence


def test_only_the_thread_that_compares_is_silent():
    with silence(), ThreadPoolExecutor(1) as pool:
        assert is_silent()
        assert not pool.submit(is_silent).result()
    assert not is_silent()

"""Signals are delayed in critical sections, and never lost."""
# ruff: noqa: PT012 (the tests check what a block does afterwards)

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from pilotage import interrupts
from pilotage.interrupts import INTERRUPTS


@pytest.fixture
def calls():
    """The arguments of the calls of SIGUSR1's handler."""
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    yield seen
    signal.signal(signal.SIGUSR1, before)


def test_a_signal_waits_for_the_end_of_the_block():
    done = False
    with pytest.raises(KeyboardInterrupt), INTERRUPTS:
        signal.raise_signal(signal.SIGINT)
        done = True
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_inner_block_does_not_deliver_signals():
    with pytest.raises(KeyboardInterrupt), INTERRUPTS:
        with INTERRUPTS:
            signal.raise_signal(signal.SIGINT)
        inner = True
    assert inner


def test_a_signal_is_delivered_at_a_safe_point():
    reached = []
    with pytest.raises(KeyboardInterrupt), INTERRUPTS:
        INTERRUPTS.deliver_pending()
        signal.raise_signal(signal.SIGINT)
        reached.append("held")
        INTERRUPTS.deliver_pending()
        reached.append("let in")
    assert reached == ["held"]


def test_an_open_block_is_interrupted_at_once_but_not_its_inner_blocks():
    reached = []
    with pytest.raises(KeyboardInterrupt), INTERRUPTS, INTERRUPTS.open():
        with INTERRUPTS:
            signal.raise_signal(signal.SIGINT)
            reached.append("held")
        reached.append("let in")
    assert reached == ["held"]
    with pytest.raises(KeyboardInterrupt), INTERRUPTS, INTERRUPTS.open():
        signal.raise_signal(signal.SIGINT)
        reached.append("held")
    assert reached == ["held"]


def test_the_users_handler_is_called_once_and_stays(calls):
    own = signal.getsignal(signal.SIGUSR1)
    with INTERRUPTS:
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR1)
        assert not calls
    assert calls == [signal.SIGUSR1]
    assert signal.getsignal(signal.SIGUSR1) is own


def test_several_signals_are_all_delivered(calls):
    with pytest.raises(KeyboardInterrupt), INTERRUPTS:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGUSR1)
    assert calls == [signal.SIGUSR1]


def test_a_handler_that_is_set_meanwhile_stays():
    before = signal.getsignal(signal.SIGINT)
    try:
        with INTERRUPTS:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_repeated_signal_is_delivered_after_a_while(monkeypatch):
    monkeypatch.setattr(interrupts, "_MAX_DELAY", 0.0)
    reached = []
    with pytest.raises(KeyboardInterrupt), INTERRUPTS:
        signal.raise_signal(signal.SIGINT)
        reached.append("first")
        signal.raise_signal(signal.SIGINT)
        reached.append("second")
    assert reached == ["first"]


def test_other_threads_neither_hold_nor_receive_signals():
    def hold():
        with INTERRUPTS:
            held.set()
            go_on.wait(30)
            INTERRUPTS.deliver_pending()

    held, go_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), INTERRUPTS:
        signal.raise_signal(signal.SIGINT)
        go_on.set()
        thread.join()
        is_still_here = True
    assert is_still_here


def test_handlers_are_restored_after_an_interrupt_at_any_instruction(key_press):
    for number in range(1, 400):
        with key_press(number), INTERRUPTS:
            INTERRUPTS.deliver_pending()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert INTERRUPTS._depth == 0


def test_a_child_forked_while_signals_wait_has_its_own_handlers():
    script = """
        import os, signal, threading
        from pilotage.interrupts import INTERRUPTS

        def fork():
            child = os.fork()
            if child == 0:
                try:
                    os.kill(os.getpid(), signal.SIGINT)
                    os._exit(1)
                except KeyboardInterrupt:
                    os._exit(0)
            results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        results = []
        with INTERRUPTS:
            thread = threading.Thread(target=fork)
            thread.start()
            thread.join()
        print(results)
    """
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout.strip() == "[0]", ran.stderr


def test_a_process_can_interrupt_itself():
    with pytest.raises(KeyboardInterrupt), INTERRUPTS:
        os.kill(os.getpid(), signal.SIGINT)

"""Threads take turns, and no interrupt or fork leaves one waiting forever."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from pilotage.turns import Turn, in_turn


def in_thread(action):
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_a_turn_excludes_other_threads_and_is_reentrant():
    turn, inside, most = Turn(), [], []

    def work():
        for _ in range(200):
            with turn, turn:
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    for thread in [in_thread(work) for _ in range(4)]:
        thread.join()
    assert len(most) == 800
    assert set(most) == {1}


def test_joined_turns_are_one_turn():
    first, second, third = Turn(), Turn(), Turn()
    first.join(second)
    second.join(third)
    taken = []
    with first:
        in_thread(lambda: taken.append([turn.take(0.01) for turn in (second, third)])).join()
    assert taken == [[False, False]]
    with third:
        assert first.is_mine


def test_a_thread_that_waits_for_a_turn_can_be_interrupted():
    turn, held, over = Turn(), threading.Event(), threading.Event()

    def hold():
        with turn:
            held.set()
            over.wait(30)

    thread = in_thread(hold)
    held.wait(30)
    threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,)).start()
    with pytest.raises(KeyboardInterrupt), turn:
        pass
    over.set()
    thread.join()
    assert turn.take(0)
    turn.give()


def test_an_interrupt_at_any_instruction_leaves_the_turn_to_others(key_press):
    turn, taken = Turn(), []
    for number in range(1, 400):
        with key_press(number), turn:
            pass
        in_thread(lambda: (taken.append(turn.take(0)), taken[-1] and turn.give())).join()
    assert all(taken)


def test_a_method_runs_in_its_turn():
    class Held:
        turn = Turn()

        @in_turn
        def work(self, number):
            return number, self.turn.is_mine

    assert Held().work(3) == (3, True)
    assert not Held.turn.is_mine


def test_a_child_forked_during_another_threads_turn_can_take_its_own():
    script = """
        import os, threading
        from pilotage.turns import Turn

        turn, mine, held, over = Turn(), Turn(), threading.Event(), threading.Event()
        other = Turn()
        other.join(turn)

        def hold():
            with turn:
                held.set()
                over.wait(30)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(30)
        with mine:
            child = os.fork()
            if child == 0:
                os._exit(0 if turn.take(1) and other.is_mine and mine.is_mine else 1)
        over.set()
        thread.join()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout.strip() == "0", ran.stderr

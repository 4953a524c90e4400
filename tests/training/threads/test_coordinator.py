"""Threads that stop together."""

from __future__ import annotations

import sys
import threading

import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S
from tfray.errors import CancelledError, OutOfRangeError


def started(function, *arguments):
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def works_until_stop(coord):
    with coord.stop_on_exception():
        coord.wait_for_stop()


def fails_with(coord, error, gate=None):
    with coord.stop_on_exception():
        if gate is not None:
            gate.wait()
        raise error


def test_whoever_asks_stops_all():
    coord = tf.train.Coordinator()
    assert not coord.should_stop() and not coord.wait_for_stop(0.001)
    threads = [started(works_until_stop, coord) for _ in range(3)]
    coord.request_stop()
    assert coord.should_stop() and coord.wait_for_stop()
    coord.join(threads)
    assert coord.joined and not any(thread.is_alive() for thread in threads)


def test_join_waits_for_threads_that_end_by_themselves():
    coord = tf.train.Coordinator()
    gate = threading.Event()
    threads = [started(gate.wait), started(gate.wait)]
    gate.set()
    coord.join(threads)
    assert not coord.should_stop()


def test_registered_threads_are_joined_too():
    coord = tf.train.Coordinator()
    thread = started(works_until_stop, coord)
    coord.register_thread(thread)
    coord.request_stop()
    coord.join()
    assert not thread.is_alive()


def test_the_first_error_is_raised_by_join():
    coord, gate = tf.train.Coordinator(), threading.Event()
    first = started(fails_with, coord, ValueError("first"))
    first.join()
    second = started(fails_with, coord, ValueError("second"), gate)
    gate.set()
    with pytest.raises(ValueError, match="first"):
        coord.raise_requested_exception()
    with pytest.raises(ValueError, match="first"):
        coord.join([first, second])


def test_an_error_may_be_given_as_exc_info():
    coord = tf.train.Coordinator()
    try:
        raise KeyError("here")
    except KeyError:
        coord.request_stop(sys.exc_info())
    with pytest.raises(KeyError, match="here"):
        coord.join()


def test_the_end_of_input_is_no_error():
    coord = tf.train.Coordinator()
    thread = started(fails_with, coord, OutOfRangeError("the end"))
    coord.join([thread])
    assert coord.should_stop()
    coord.raise_requested_exception()


def test_what_counts_as_a_clean_end_can_be_chosen():
    coord = tf.train.Coordinator(clean_stop_exception_types=(CancelledError,))
    coord.request_stop(CancelledError("fine"))
    coord.join()
    coord.clear_stop()
    assert not coord.should_stop() and not coord.joined
    coord.request_stop(OutOfRangeError("not fine"))
    with pytest.raises(OutOfRangeError):
        coord.join()


def test_an_error_after_join_is_raised_at_once():
    coord = tf.train.Coordinator()
    coord.join()
    with pytest.raises(ValueError, match="late"):
        coord.request_stop(ValueError("late"))
    coord.request_stop(OutOfRangeError("fine"))
    coord.request_stop()


def test_threads_that_do_not_stop_are_named():
    coord, gate = tf.train.Coordinator(), threading.Event()
    thread = threading.Thread(target=gate.wait, name="stubborn", daemon=True)
    thread.start()
    coord.request_stop()
    with pytest.raises(RuntimeError, match="stubborn"):
        coord.join([thread], stop_grace_period_secs=0.05)
    coord.clear_stop()
    coord.request_stop()
    coord.join([thread], stop_grace_period_secs=0.05, ignore_live_threads=True)
    gate.set()


def test_an_error_that_nobody_reports_is_not_swallowed():
    coord = tf.train.Coordinator()
    with pytest.raises(KeyboardInterrupt), coord.stop_on_exception():
        raise KeyboardInterrupt
    assert not coord.should_stop()


def test_a_looper_turns_until_the_coordinator_stops():
    coord, turns, enough = tf.train.Coordinator(), [], threading.Event()

    def turn(start, step):
        turns.append(start + step * len(turns))
        if len(turns) == 3:
            enough.set()

    thread = tf.train.LooperThread.loop(coord, 0.001, turn, args=(10,), kwargs={"step": 2})
    assert enough.wait(PATIENCE_S)
    coord.request_stop()
    coord.join([thread])
    assert turns[:3] == [10, 12, 14]


def test_a_looper_can_be_derived_from_and_its_error_stops_all():
    log = []

    class Looper(tf.train.LooperThread):
        def start_loop(self):
            log.append("start")

        def run_loop(self):
            log.append("turn")
            if len(log) == 4:
                raise ValueError("enough")

        def stop_loop(self):
            log.append("stop")

    coord = tf.train.Coordinator()
    looper = Looper(coord, None)
    looper.start()
    with pytest.raises(ValueError, match="enough"):
        coord.join()
    assert log == ["start", "turn", "turn", "turn"]
    with pytest.raises(ValueError, match="Coordinator"):
        tf.train.LooperThread(None, 1.0)

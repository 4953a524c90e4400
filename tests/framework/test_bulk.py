"""No garbage is searched for while much is made, and it is again afterwards."""

from __future__ import annotations

import gc
import threading

import pytest

import tfray as tf
from tfray.bulk import making_much


def test_the_search_for_garbage_goes_on_afterwards():
    with making_much():
        assert not gc.isenabled()
        with making_much():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError), making_much():
        raise ValueError
    assert gc.isenabled()


def test_the_last_thread_to_leave_lets_the_search_go_on():
    entered, leave = threading.Event(), threading.Event()

    def within():
        with making_much():
            entered.set()
            leave.wait(60)

    other = threading.Thread(target=within)
    with making_much():
        other.start()
        assert entered.wait(60)
    assert not gc.isenabled()
    leave.set()
    other.join(60)
    assert gc.isenabled()


def test_a_process_that_searches_for_no_garbage_stays_so():
    gc.disable()
    try:
        with making_much():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_graph_that_cannot_be_imported_or_compiled_leaves_the_search_on():
    message = tf.GraphDef()
    message.node.add(name="a", op="NoSuchType")
    with tf.Graph().as_default(), pytest.raises(tf.errors.UnimplementedError):
        tf.import_graph_def(message)
    assert gc.isenabled()
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.device("/job:nowhere"):
            constant = tf.constant(1.0)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(constant)
    assert gc.isenabled()

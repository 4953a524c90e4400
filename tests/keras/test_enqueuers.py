"""Batches that threads make ready: `tf.keras.utils`' enqueuers."""

from __future__ import annotations

import itertools
import multiprocessing

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S

utils = tf.keras.utils


class Squares(utils.Sequence):
    def __init__(self, count):
        self.count, self.epochs = count, 0

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index >= 100:
            raise KeyError(f"there is no batch {index}")
        return np.full(2, self.epochs * 1000 + index**2)

    def on_epoch_end(self):
        self.epochs += 1


def firsts(enqueuer, count):
    return [int(batch[0]) for batch in itertools.islice(enqueuer.get(), count)]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_keep_their_order_epoch_after_epoch(workers):
    enqueuer = utils.OrderedEnqueuer(Squares(4))
    enqueuer.start(workers, max_queue_size=2)
    assert firsts(enqueuer, 10) == [0, 1, 4, 9, 1000, 1001, 1004, 1009, 2000, 2001]
    assert enqueuer.is_running()
    enqueuer.stop(PATIENCE_S)
    assert not enqueuer.is_running() and not enqueuer.run_thread.is_alive()


def test_batches_of_an_epoch_in_any_order():
    enqueuer = utils.OrderedEnqueuer(Squares(50), use_multiprocessing=False, shuffle=True)
    enqueuer.start()
    batches = firsts(enqueuer, 50)
    enqueuer.stop(PATIENCE_S)
    assert sorted(batches) == [index**2 for index in range(50)] != batches


def test_no_processes_are_left():
    """TensorFlow ends those of its pools; here threads make the batches."""
    enqueuer = utils.OrderedEnqueuer(Squares(3), use_multiprocessing=True)
    enqueuer.start()
    assert len(firsts(enqueuer, 3)) == 3
    assert tf.keras.experimental.terminate_keras_multiprocessing_pools(0.0, use_sigkill=True) == []
    assert multiprocessing.active_children() == []
    enqueuer.stop()


def test_a_generator_ends():
    enqueuer = utils.GeneratorEnqueuer(np.full(2, index) for index in range(7))
    assert isinstance(enqueuer, utils.SequenceEnqueuer) and not enqueuer.is_running()
    enqueuer.start(max_queue_size=3)
    assert firsts(enqueuer, 100) == list(range(7))
    assert not enqueuer.is_running()


def test_an_error_of_the_source_is_raised():
    def failing():
        yield np.zeros(2)
        raise OSError("the disk is gone")

    enqueuer = utils.GeneratorEnqueuer(failing())
    enqueuer.start()
    with pytest.raises(OSError, match="the disk is gone"):
        firsts(enqueuer, 5)
    ordered = utils.OrderedEnqueuer(Squares(102))
    ordered.start(2)
    with pytest.raises(KeyError, match="no batch 100"):
        firsts(ordered, 200)
    assert not enqueuer.is_running() and not ordered.is_running()


def test_a_sequence_without_batches_ends():
    enqueuer = utils.OrderedEnqueuer(Squares(0))
    enqueuer.start()
    assert firsts(enqueuer, 5) == []
    assert not enqueuer.is_running()


def test_an_error_at_the_end_of_an_epoch_is_raised():
    class Ending(Squares):
        def on_epoch_end(self):
            raise OSError("no further epoch")

    enqueuer = utils.OrderedEnqueuer(Ending(3))
    enqueuer.start()
    with pytest.raises(OSError, match="no further epoch"):
        firsts(enqueuer, 5)
    assert not enqueuer.is_running()

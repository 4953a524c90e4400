"""What operations tell of a device's memory."""

from __future__ import annotations

import mmap
import os

import numpy as np

import tfray as tf
from tfray.contrib import memory_stats


def test_memory_of_a_process(session):
    with tf.device("/cpu:0"):
        told = [memory_stats.BytesInUse(), memory_stats.MaxBytesInUse(), memory_stats.BytesLimit()]
    assert [(each.dtype, each.shape.as_list()) for each in told] == [(tf.int64, [])] * 3
    used, most, limit = (session.run(each) for each in told)
    assert 1e6 < used <= most < limit == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_it_is_told_anew_in_each_step(session):
    with tf.device("/cpu:0"):
        told = memory_stats.BytesInUse()
    before = session.run(told)
    taken = mmap.mmap(-1, 100_000_000)  # an array may get memory that the process has freed, and still has
    np.frombuffer(taken, np.uint8)[:] = 1
    assert session.run(told) > before + 50_000_000

"""What event files hold, as this project and as TensorBoard read them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfray as tf


def events_in(folder):
    return [event for path in sorted(Path(folder).glob("*tfevents*")) for event in tf.train.summary_iterator(path)]


def kinds(events):
    return [event.WhichOneof("what") for event in events]


def tensorboard_view(folder):
    """What TensorBoard's reader finds."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    everything = dict.fromkeys(accumulator.DEFAULT_SIZE_GUIDANCE, 0)
    found = accumulator.EventAccumulator(str(folder), everything)
    return found.Reload()

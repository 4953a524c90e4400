"""What tests of sessions for training share."""

import pytest

import tfray as tf


@pytest.fixture(autouse=True)
def closed_writers():
    """Writers of event files do not outlive a test."""
    yield
    tf.summary.FileWriterCache.clear()

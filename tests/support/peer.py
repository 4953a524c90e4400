"""TensorFlow beside tfray: tests that compare both run only where an interpreter that has it is named."""

from __future__ import annotations

import os

import pytest

PEER = os.environ.get("TFRAY_PEER_PYTHON", "")
"""An interpreter of its own that has TensorFlow."""

needs_peer = pytest.mark.skipif(not PEER, reason="TFRAY_PEER_PYTHON names no interpreter with TensorFlow")

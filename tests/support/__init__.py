"""What tests share: references, small models, helpers for processes, and rows for the battery of operations."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout. Processes that tests start find `tfray` and `tests` there."""
GOLDEN = ROOT / "tests" / "golden"
"""What TensorFlow has computed and written, for comparison."""

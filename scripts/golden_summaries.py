#!/usr/bin/env python
"""Write ``tests/golden/summaries.json``: what TensorFlow's summaries hold.

The calls stand in ``tests/support/cases/summary_cases.py``.

Run it with an interpreter that has TensorFlow; tfray itself is not needed:

    /path/to/python scripts/golden_summaries.py
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow.compat.v1 as tf

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.cases.summary_cases import CASES  # noqa: E402


def main() -> None:
    """Write the file."""
    tf.disable_v2_behavior()
    found = {}
    for name, case in CASES.items():
        with tf.Graph().as_default(), tf.Session() as session:
            case(tf)
            found[name] = base64.b64encode(session.run(tf.summary.merge_all())).decode()
    path = ROOT / "tests" / "golden" / "summaries.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{len(found)} summaries, {path.stat().st_size} bytes in {path}")


if __name__ == "__main__":
    main()

"""Write tests/golden/estimators.json: what TensorFlow's estimators give in tests/support/cases/estimator_cases.py.

    python scripts/golden_estimators.py

It needs TensorFlow 2.15, the last release with tf.estimator.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Run all cases with TensorFlow."""
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    sys.path.insert(0, str(ROOT))
    from tests.support.cases import estimator_cases

    found = {}
    for name in estimator_cases.cases(tf):
        with tempfile.TemporaryDirectory() as folder:
            found[name] = estimator_cases.run(tf, name, folder)
    path = ROOT / "tests" / "golden" / "estimators.json"
    path.write_text(json.dumps({"tensorflow": tf.__version__, "cases": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()

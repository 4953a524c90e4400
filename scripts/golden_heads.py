"""Write tests/golden/head_metrics.json: what TensorFlow's heads give in tests/support/cases/head_cases.py.

    python scripts/golden_heads.py

It needs TensorFlow 1.15.
"""

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main():
    """Run all cases with TensorFlow."""
    import tensorflow as tf

    # By its file: the package of the tests needs a newer Python than TensorFlow 1.15.
    spec = importlib.util.spec_from_file_location("cases", str(ROOT / "tests/support/cases/head_cases.py"))
    head_cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(head_cases)
    found = {}
    for name in head_cases.cases(tf):
        with tf.Graph().as_default():
            found[name] = head_cases.run(tf, name)
    path = ROOT / "tests" / "golden" / "head_metrics.json"
    path.write_text(json.dumps({"tensorflow": tf.__version__, "cases": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()

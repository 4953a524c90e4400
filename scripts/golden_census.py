"""Write tests/golden/census.json: how often TensorFlow is right in tests/support/cases/census_cases.py.

    python scripts/golden_census.py

It needs TensorFlow 1.15.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Train all kinds with TensorFlow."""
    import tensorflow as tf

    sys.path.insert(0, str(ROOT / "tests" / "support" / "cases"))
    import census_cases

    accuracy = {kind: census_cases.run(tf, kind) for kind in census_cases.KINDS}
    path = ROOT / "tests" / "golden" / "census.json"
    path.write_text(json.dumps({"tensorflow": tf.__version__, "accuracy": accuracy}, indent=1) + "\n")


if __name__ == "__main__":
    main()

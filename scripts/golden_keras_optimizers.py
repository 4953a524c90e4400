"""Write tests/golden/keras_optimizers.json: what optimizers do in tests/support/cases/keras_optimizer_cases.py.

    python scripts/golden_keras_optimizers.py

It needs a TensorFlow that still has its own Keras within.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Run all cases with TensorFlow."""
    import tensorflow.compat.v1 as tf
    from tensorflow.python.keras.optimizer_v2 import (
        adadelta,
        adagrad,
        adam,
        adamax,
        ftrl,
        gradient_descent,
        learning_rate_schedule,
        nadam,
        rmsprop,
    )

    tf.disable_v2_behavior()
    sys.path.insert(0, str(ROOT))
    from tests.support.cases import keras_optimizer_cases

    optimizers = SimpleNamespace(
        SGD=gradient_descent.SGD,
        Adadelta=adadelta.Adadelta,
        Adagrad=adagrad.Adagrad,
        Adam=adam.Adam,
        Adamax=adamax.Adamax,
        Ftrl=ftrl.Ftrl,
        Nadam=nadam.Nadam,
        RMSprop=rmsprop.RMSprop,
        schedules=learning_rate_schedule,
    )
    found = {name: keras_optimizer_cases.run(tf, optimizers, name) for name in keras_optimizer_cases.CASES}
    path = ROOT / "tests" / "golden" / "keras_optimizers.json"
    path.write_text(json.dumps({"tensorflow": tf.__version__, "cases": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""``tf.distribute.experimental``: strategies whose interface TensorFlow 1.15 did not promise to keep."""

from tfray.distribute.strategies import (
    CentralStorageStrategy,
    CollectiveCommunication,
    MultiWorkerMirroredStrategy,
    ParameterServerStrategy,
)

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
]

"""``tf.contrib.tensor_forest``: random forests that learn from batches, as graphs and as estimators."""

from types import SimpleNamespace

from tfray.estimator.canned_models import forest, forest_metrics
from tfray.library.forest import forest_graphs

client = SimpleNamespace(random_forest=forest, eval_metrics=forest_metrics)
python = SimpleNamespace(tensor_forest=forest_graphs)

__all__ = ["client", "python"]

"""The names of ``tf.contrib.estimator``: hooks that stop training early."""

# isort: skip_file
from tfray.training.sessions.hooks_stopping import (
    make_early_stopping_hook as make_early_stopping_hook,
    read_eval_metrics as read_eval_metrics,
    stop_if_higher_hook as stop_if_higher_hook,
    stop_if_lower_hook as stop_if_lower_hook,
    stop_if_no_decrease_hook as stop_if_no_decrease_hook,
    stop_if_no_increase_hook as stop_if_no_increase_hook,
)

"""Networks for images in the style of ``tf.contrib.slim``: their variables are named as in published checkpoints."""

"""What ``tf.contrib.learn`` is made of."""

"""Sessions that look after themselves: hooks, recovery, training loops of TensorFlow 1."""

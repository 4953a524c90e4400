"""TensorFlow's own graphs, in and out."""

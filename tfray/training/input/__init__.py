"""Input pipelines of TensorFlow 1: producers and batches by queues."""

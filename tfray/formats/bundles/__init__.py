"""TensorFlow's checkpoints: formats V1 and V2, and the sorted tables in which both keep what they hold."""

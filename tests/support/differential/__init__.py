"""Random programs in TensorFlow's public names, run by tfray and by TensorFlow."""

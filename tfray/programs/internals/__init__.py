"""What TensorFlow keeps to itself within its modules, and programs import: by what it is about."""

"""Programs of others, as they are: TensorFlow's module paths, running them, older names, data of tutorials."""

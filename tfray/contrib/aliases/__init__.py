"""Modules of ``tf.contrib`` that have a few names, each of something that lies elsewhere."""

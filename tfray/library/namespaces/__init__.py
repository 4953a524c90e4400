"""The modules behind `tf.math`, `tf.nn` and so on. They define nothing: each collects the names of one namespace."""

"""What users reach as tf.nn, tf.train and their like: public namespaces over the ops."""

"""The names of ``tf.sparse``."""

# isort: skip_file
from tfray.framework.sparse_tensor import SparseTensor as SparseTensor

"""Graphs in TensorFlow's own form: `from_tensorflow` makes tfray's operations of them.

`op_table` knows TensorFlow's operation types. Where tfray's type agrees, nothing else is needed; `import_rules` says
what to do where it differs. `gradient_arrays` and `functionalize` first turn the gradients of TensorFlow 1's
TensorArrays into values and its control flow into functions.
"""

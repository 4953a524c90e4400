"""Graphs in TensorFlow's own form: `from_tensorflow` makes tfray's operations of them.

`op_table` knows TensorFlow's operation types. Where tfray's type agrees, nothing else is needed; `import_rules` says
what to do where it differs. `functionalize` first turns TensorFlow 1's control flow into functions.
"""

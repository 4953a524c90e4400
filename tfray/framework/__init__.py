"""The dataflow graph: dtypes, shapes, devices, operations. Knows no op, kernel or process."""

"""The operations: one family a file, one op a block of function, kernel, gradient and definition."""

if __name__ != "tfray.ops":
    raise ImportError("import this package as tfray.ops: under another name it would be loaded twice")

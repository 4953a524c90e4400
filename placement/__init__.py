"""Compiling a graph: prune, simplify, place, partition."""

if __name__ != "tfray.placement":
    raise ImportError("import this package as tfray.placement: under another name it would be loaded twice")

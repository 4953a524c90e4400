"""Devices as Ray actors, the rendezvous between them, and the driver that hands out steps."""

if __name__ != "tfray.actors":
    raise ImportError("import this package as tfray.actors: under another name it would be loaded twice")

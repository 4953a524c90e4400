"""Archives of the tests' own."""

from __future__ import annotations

import tarfile


def unpack(archive, folder):
    """Put the files of a tar archive into a folder."""
    # Pythons before 3.11.4 have no filters; of those that have, some want to be told which.
    how = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(archive) as opened:
        opened.extractall(folder, **how)

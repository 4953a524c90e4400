"""``python -m tfray.cli``: the command `tfray`, for environments whose scripts are not on the path."""

from tfray.cli.commands import main

main()

"""``python -m tfray SCRIPT.py`` runs a program of TensorFlow 1; anything else is for the command `tfray`."""

import sys

from tfray.cli.program_command import begins_with_program, run_program

if begins_with_program(sys.argv[1:]):
    run_program.main(prog_name="python -m tfray")
else:
    from tfray.cli import main

    main(prog_name="python -m tfray")

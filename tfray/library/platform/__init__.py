"""What programs need of their surroundings: flags, files, logging, tests."""

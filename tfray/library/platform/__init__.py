"""How programs deal with their environment: flags, files, logging, tests."""

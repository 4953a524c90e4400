"""Files of each kind that is read, damaged at random."""

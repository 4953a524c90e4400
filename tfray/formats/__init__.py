"""Forms in which data lie in files and travel: protocol buffers, records, checksums, paths. Knows no op."""

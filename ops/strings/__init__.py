"""Text, and what it encodes: numbers, records, examples."""

"""Operations on strings, and on data encoded in strings: numbers, records, examples."""

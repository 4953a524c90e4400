"""Operations that make, move, shape and select elements."""

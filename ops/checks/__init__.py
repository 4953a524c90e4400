"""Operations that check or print values while a step runs."""

"""Operations that compute with elements: arithmetic, comparisons, sums, products, order."""

"""The tests of tfray. Rooms are those of the product; what tests share stands in `tests.support`."""

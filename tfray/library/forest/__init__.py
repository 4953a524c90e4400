"""Random forests that learn from batches: their parameters, and the graphs that train and use them."""

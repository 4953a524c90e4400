"""Operations of neural networks: layers' computations, losses, normalization, embeddings."""

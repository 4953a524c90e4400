"""Two stand-ins for a GPU, and checks of the GPU paths by them; `README.md` tells how."""

"""The real CuPy over an emulated CUDA: see `emu.driver` for how it runs and `emu.build` for how it is made."""

def load(path):
    """x"""

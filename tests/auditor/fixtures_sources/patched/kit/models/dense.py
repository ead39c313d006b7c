class Dense:
    layers = 32

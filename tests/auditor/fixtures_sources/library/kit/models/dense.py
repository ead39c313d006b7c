class Dense:
    layers = 4

    def forward(self, ids):
        return ids

class Hybrid:
    conv_states = ("conv",)

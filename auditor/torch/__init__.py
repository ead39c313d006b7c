"""PyTorch on shapes: what its functions, layers and tensors do to a shape that may have symbolic dimensions."""

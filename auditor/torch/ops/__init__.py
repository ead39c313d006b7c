"""PyTorch's functions and tensor methods on shapes: one file a family. `auditor.torch.methods` has their names.

Both spellings, function and method, share one implementation: the tensor comes first.
"""

"""`torch.nn.Module`: one file a subject. `auditor.torch.modules` puts them together."""

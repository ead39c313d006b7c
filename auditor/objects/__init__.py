"""Classes, their instances and attributes: one file a subject."""

"""Functions and calls: one file a subject; `auditor.calls.dispatch` finds the one that a value needs."""

"""The speculative loop, on against off: drafters, policies, the loop, the discipline of the pairs, the record."""

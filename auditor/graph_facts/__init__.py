"""From an export call to the facts of its graph: states, query, logits, and what else a rule reads; one file a fact."""

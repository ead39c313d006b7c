"""What each expression node means: one file a kind; `auditor.expressions.dispatch` has the table of them."""

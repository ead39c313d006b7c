"""What each statement node does: one file a kind; `auditor.statements.dispatch` has the table of them."""

"""Facts about exported graphs, the rules that read them, and the verdicts that follow."""

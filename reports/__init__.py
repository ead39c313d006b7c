"""Findings as text, JSON and HTML. Reports render what `rules` says and compute nothing."""

"""Sequences, mappings and their items: one file a subject."""

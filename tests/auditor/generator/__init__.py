"""Generates export scripts whose truth is known, by construction and by running them with stand-ins."""

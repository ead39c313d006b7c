"""Advice: rules that never change a verdict, one a file."""

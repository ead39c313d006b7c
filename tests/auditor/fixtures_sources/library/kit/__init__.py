"""A small library of exporters, as published."""

"""Benchmark of learners: one protocol, result cards, and their tables."""

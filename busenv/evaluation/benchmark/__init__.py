"""Benchmark of learners: one protocol, results, and their tables."""

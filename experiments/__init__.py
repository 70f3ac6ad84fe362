"""Benchmarks, ratings, studies, training runs, the play server, and the command line."""

"""Who measures: benchmarks, ratings, reports, and the command line."""

"""Console output, plots, intervals, run folders, worker processes."""

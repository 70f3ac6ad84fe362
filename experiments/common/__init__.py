"""Console output, plots, intervals, and worker processes, shared by all experiments."""

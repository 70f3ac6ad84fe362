"""Studies: fits of the parameters of shipped agents, comparison of training targets."""

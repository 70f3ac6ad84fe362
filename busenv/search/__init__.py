"""Monte Carlo tree search: trees, the solver, and the searches of `uct` and `az`."""

"""Monte Carlo tree search: tree, search, playouts, and the agents `uct` and `az`."""

"""Monte Carlo tree search: the tree (search), its playouts (playout), the agent (uct)."""

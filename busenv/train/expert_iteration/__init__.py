"""Expert iteration: a search guided by a network plays, and the network learns from it."""

"""Programs that fit the parameters of shipped agents."""

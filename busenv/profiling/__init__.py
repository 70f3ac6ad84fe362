"""Measurements of speed: environments, agents, training and the play server."""

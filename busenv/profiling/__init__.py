"""Measurements of speed: environments and agents, also compared with another version."""

"""Ratings of agents: balanced, parallel, resumable."""

"""A scripted player with a plan, and its outlook on a position."""

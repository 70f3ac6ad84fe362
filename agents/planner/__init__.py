"""A scripted player with a plan, and its evaluation of positions, which the search uses too."""

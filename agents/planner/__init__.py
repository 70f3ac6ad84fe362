"""The `planner` agent and the evaluation of positions that it shares with the search."""

"""Games played in the browser."""

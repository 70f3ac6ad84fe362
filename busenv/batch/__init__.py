"""Batches of games stepped in one call, their threads and their opponents."""

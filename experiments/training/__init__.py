"""Training runs with their curves, ratings and reports."""

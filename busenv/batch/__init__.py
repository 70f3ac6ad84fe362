"""Many games stepped side by side."""

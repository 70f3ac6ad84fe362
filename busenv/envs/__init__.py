"""Faces for the libraries: PettingZoo, Gymnasium (single and vector), Stable-Baselines3."""

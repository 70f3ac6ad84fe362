"""Environments: Gymnasium (single and vector), PettingZoo (AEC and parallel), Stable-Baselines3,
RLlib and OpenSpiel."""

"""Environments of the game for reinforcement-learning libraries.

Gymnasium (single and vector), PettingZoo (AEC and parallel), Stable-Baselines3, RLlib, OpenSpiel,
and text for language models.
"""

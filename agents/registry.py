"""Agents by their spec strings."""

from __future__ import annotations

from agents.base import Agent
from agents.scripted import GreedyAgent, RandomAgent

SPECS = ("random", "greedy", "ppo:FILE")


def make_agent(spec: str, seed: int = 0) -> Agent:
    """Build an agent from its spec; ValueError says which specs there are."""
    kind, _, detail = spec.partition(":")
    if spec == "random":
        return RandomAgent(seed)
    if spec == "greedy":
        return GreedyAgent(seed)
    if kind == "ppo" and detail:
        from agents.policy import load_policy_agent  # needs torch, which the others do not

        return load_policy_agent(detail, seed)
    raise ValueError(f"unknown agent {spec!r}; allowed: {', '.join(SPECS)}")

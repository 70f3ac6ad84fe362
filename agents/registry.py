"""Agents by their spec strings."""

from __future__ import annotations

import re

from agents.base import Agent
from agents.external import SECONDS, ExternalAgent
from agents.scripted import GreedyAgent, RandomAgent

SPECS = ("random", "greedy", "ppo:FILE", "exec:COMMAND", "exec@SECONDS:COMMAND")


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
    if found := re.fullmatch(r"exec(?:@([0-9]+(?:\.[0-9]+)?))?:(.+)", spec):
        return ExternalAgent(found[2], seed, float(found[1] or SECONDS), name=spec)
    raise ValueError(f"unknown agent {spec!r}; allowed: {', '.join(SPECS)}")

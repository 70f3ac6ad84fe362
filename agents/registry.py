"""Agents by their spec strings."""

from __future__ import annotations

import re

from busenv.agents.base import Agent
from busenv.agents.external.agent import SECONDS, ExternalAgent
from busenv.agents.mcts.uct import UctAgent
from busenv.agents.planner.agent import PlannerAgent
from busenv.agents.scripted import GreedyAgent, RandomAgent

SPECS = (
    "random",
    "greedy",
    "planner",
    "uct:SIMULATIONS",
    "uct:SECONDSs",
    "uct@THREADS:...",
    "ppo:NAME",
    "ppo:PATH",
    "ppo@TEMPERATURE:PATH",
    "exec:COMMAND",
    "exec@SECONDS:COMMAND",
)
UCT = r"uct(?:@([1-9][0-9]?))?:(?:([1-9][0-9]{0,8})|([0-9]+(?:\.[0-9]+)?)s)"
NUMBER = r"[0-9]+(?:\.[0-9]+)?"


def make_agent(spec: str, seed: int = 0) -> Agent:
    """Build an agent from its spec (SPECS). seed: 0 to 2**64 - 1, until `reset` gives another.

    ValueError says which specs there are, or what is wrong with this one; FileNotFoundError when
    there is no such model or program, ModuleNotFoundError when `ppo` finds no torch.
    """
    if spec == "random":
        return RandomAgent(seed)
    if spec == "greedy":
        return GreedyAgent(seed)
    if spec == "planner":
        return PlannerAgent(seed)
    if found := re.fullmatch(UCT, spec):
        simulations = int(found[2]) if found[2] else None
        seconds = float(found[3]) if found[3] else None
        return UctAgent(simulations, seconds, int(found[1] or 1), seed, name=spec)
    if found := re.fullmatch(rf"ppo(?:@({NUMBER}))?:(.+)", spec):
        from busenv.agents.neural.files import (
            load_policy_agent,  # needs torch, which the others do not
        )

        temperature = float(found[1]) if found[1] else None  # the model's own
        return load_policy_agent(found[2], seed, temperature, spec)
    if found := re.fullmatch(rf"exec(?:@({NUMBER}))?:(.+)", spec):
        return ExternalAgent(found[2], seed, float(found[1] or SECONDS), name=spec)
    raise ValueError(f"unknown agent {spec!r}; allowed: {', '.join(SPECS)}")

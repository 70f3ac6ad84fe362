"""Agents by their spec strings."""

from __future__ import annotations

import re

from busenv.agents.base import Agent
from busenv.agents.external.agent import SECONDS, ExternalAgent
from busenv.agents.mcts.uct import UctAgent
from busenv.agents.planner.agent import PlannerAgent
from busenv.agents.scripted import GreedyAgent, RandomAgent
from busenv.hints import did_you_mean, missing_extra

SPECS = (
    "random",
    "greedy",
    "planner",
    "uct:SIMULATIONS",
    "uct:SECONDSs",
    "uct@THREADS:...",
    "net:NAME",
    "net:PATH",
    "net@TEMPERATURE:...",
    "ppo:... (the same as net:...)",
    "exec:COMMAND",
    "exec@SECONDS:COMMAND",
)
KINDS = [*dict.fromkeys(re.split("[@:]", spec)[0] for spec in SPECS)]

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
UCT = rf"uct(?:@([1-9][0-9]?))?:(?:([1-9][0-9]{{0,8}})|({NUMBER})s)"
NET = rf"(?:net|ppo)(?:@({NUMBER}))?:(.+)"
EXEC = rf"exec(?:@({NUMBER}))?:(.+)"


def make_agent(spec: str, seed: int = 0) -> Agent:
    """Build an agent from its spec (SPECS). seed: 0 to 2**64 - 1, until `reset` gives another.

    ValueError says which specs there are, or what is wrong with this one or with its model;
    FileNotFoundError when there is no such model or program; ModuleNotFoundError names the extra
    to install when a network finds no torch.
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
    if found := re.fullmatch(NET, spec):
        try:  # here, since no other agent needs torch
            from busenv.agents.neural.files import load_policy_agent
        except ModuleNotFoundError as error:
            raise missing_extra(error, "train", f"agent {spec!r}") from error
        temperature = float(found[1]) if found[1] else None  # the model's own
        return load_policy_agent(found[2], seed, temperature, spec)
    if found := re.fullmatch(EXEC, spec):
        return ExternalAgent(found[2], seed, float(found[1] or SECONDS), name=spec)
    kind = re.split("[@:]", spec)[0]
    if kind == "uct":
        raise ValueError(
            f"agent {spec!r}: a search needs a number of simulations or seconds, such as uct:300, "
            "uct:0.5s, or uct@2:300 on two threads"
        )
    hint = "" if kind in KINDS else did_you_mean(kind, KINDS)
    raise ValueError(f"unknown agent {spec!r}{hint}; allowed: {', '.join(SPECS)}")

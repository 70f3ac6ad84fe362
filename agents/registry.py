"""Agents by their spec strings."""

from __future__ import annotations

import re

from busenv.agents.base import Agent
from busenv.agents.external.external_agent import SECONDS, ExternalAgent
from busenv.agents.planner.planner_agent import PlannerAgent
from busenv.agents.scripted import GreedyAgent, RandomAgent
from busenv.agents.search.uct_agent import UctAgent
from busenv.error_text import did_you_mean, missing_extra

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
    "az:NAME:SIMULATIONS",
    "az:NAME:SECONDSs",
    "az@THREADS:...",
    "exec:COMMAND",
    "exec@SECONDS:COMMAND",
)
KINDS = [*dict.fromkeys(re.split("[@:]", spec)[0] for spec in SPECS)]

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
THREADS, BUDGET = r"(?:@([1-9][0-9]?))?", rf"(?:([1-9][0-9]{{0,8}})|({NUMBER})s)"
UCT = rf"uct{THREADS}:{BUDGET}"
AZ = rf"az{THREADS}:(.+):{BUDGET}"
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
        threads, *budget = found.groups()
        return UctAgent(*_budget(*budget), int(threads or 1), seed, name=spec)
    if found := re.fullmatch(AZ, spec):
        try:
            from busenv.agents.networks.model_files import load_search_agent
        except ModuleNotFoundError as error:
            raise missing_extra(error, "train", f"agent {spec!r}") from error
        threads, name, *budget = found.groups()
        return load_search_agent(name, *_budget(*budget), int(threads or 1), seed, spec)
    if found := re.fullmatch(NET, spec):
        try:  # here, since no other agent needs torch
            from busenv.agents.networks.model_files import load_policy_agent
        except ModuleNotFoundError as error:
            raise missing_extra(error, "train", f"agent {spec!r}") from error
        temperature = float(found[1]) if found[1] else None  # the model's own
        return load_policy_agent(found[2], seed, temperature, spec)
    if found := re.fullmatch(EXEC, spec):
        return ExternalAgent(found[2], seed, float(found[1] or SECONDS), name=spec)
    kind = re.split("[@:]", spec)[0]
    if kind == "az":
        raise ValueError(
            f"agent {spec!r}: a guided search needs a model, and a number of simulations or "
            "seconds, such as az:NAME:300, az:NAME:0.5s, or az@2:PATH:300 on two threads"
        )
    if kind == "uct":
        raise ValueError(
            f"agent {spec!r}: a search needs a number of simulations or seconds, such as uct:300, "
            "uct:0.5s, or uct@2:300 on two threads"
        )
    hint = "" if kind in KINDS else did_you_mean(kind, KINDS)
    raise ValueError(f"unknown agent {spec!r}{hint}; allowed: {', '.join(SPECS)}")


def _budget(simulations: str | None, seconds: str | None) -> tuple[int | None, float | None]:
    """Simulations or seconds of a spec, as numbers."""
    return int(simulations) if simulations else None, float(seconds) if seconds else None

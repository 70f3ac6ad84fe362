"""Agent specs and the factory that builds agents from them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from busenv.agents.base import Agent
from busenv.agents.external.external_agent import SECONDS, ExternalAgent
from busenv.agents.planner_agent import PlannerAgent
from busenv.agents.scripted import GreedyAgent, RandomAgent
from busenv.agents.uct_agent import UctAgent
from busenv.error_text import did_you_mean, missing_extra, quote

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
    "llm:MODEL",
    "llm@unlisted:MODEL",
    "llm@obfuscate=SEED:MODEL",
)
KINDS = [*dict.fromkeys(re.split("[@:]", spec)[0] for spec in SPECS)]

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
THREADS, BUDGET = r"(?:@([1-9][0-9]{0,8}))?", rf"(?:([1-9][0-9]{{0,8}})|({NUMBER})s)"
UCT = rf"uct{THREADS}:{BUDGET}"
AZ = rf"az{THREADS}:(.+):{BUDGET}"
NET = rf"(?:net|ppo)(?:@({NUMBER}))?:(.+)"
EXEC = rf"exec(?:@({NUMBER}))?:(.+)"
LLM = r"llm(?:@(unlisted))?(?:(?(1),|@)obfuscate=([0-9]{1,20}))?:(.+)"

_POLICY = (
    "a policy needs a model, and may have a temperature of 0 to 100, such as net:city-2, "
    "net@0.5:city-2 or net:PATH"
)
NEEDS = {
    "uct": "a search needs a number of simulations or seconds, such as uct:300, uct:0.5s, or "
    "uct@2:300 on two threads",
    "az": "a guided search needs a model, and a number of simulations or seconds, such as "
    "az:NAME:300, az:NAME:0.5s, or az@2:PATH:300 on two threads",
    "net": _POLICY,
    "ppo": _POLICY,
    "exec": "a program needs a command, and may have seconds per decision, such as "
    "exec:./player or exec@0.5:./player",
    "llm": "a language model needs a name, such as llm:MODEL, llm@unlisted:MODEL, "
    "llm@obfuscate=SEED:MODEL or llm@unlisted,obfuscate=SEED:MODEL",
}


def make_agent(spec: str, seed: int = 0) -> Agent:
    """Build an agent from its spec.

    spec: one of the forms in SPECS: `random`, `greedy`, `planner`, `uct:SIMULATIONS`,
        `net:NAME`, `az:NAME:SIMULATIONS`, `exec:COMMAND`, `llm:MODEL` and their variants.
    seed: 0 to 2**64 - 1, until `reset` sets another.

    Raises ValueError for an unknown spec, a bad budget or a damaged model, FileNotFoundError for a
    missing model or program, and ModuleNotFoundError, which names the extra to install, when a
    network needs torch or a language model httpx.
    """
    if not isinstance(spec, str):
        raise ValueError(f"spec is {quote(spec)}; allowed: a text such as 'greedy' or 'uct:300'")
    if spec == "random":
        return RandomAgent(seed)
    if spec == "greedy":
        return GreedyAgent(seed)
    if spec == "planner":
        return PlannerAgent(seed)
    if match := re.fullmatch(UCT, spec):
        threads, *budget = match.groups()
        return UctAgent(*_budget(*budget), threads=int(threads or 1), seed=seed, name=spec)
    if match := re.fullmatch(AZ, spec):
        threads, name, *budget = match.groups()
        with _naming_extra(spec):
            from busenv.agents.model_agents import load_search_agent
        return load_search_agent(
            name, *_budget(*budget), threads=int(threads or 1), seed=seed, spec=spec
        )
    if match := re.fullmatch(NET, spec):
        temperature = float(match[1]) if match[1] else None  # None: the model's own
        with _naming_extra(spec):
            from busenv.agents.model_agents import load_policy_agent
        return load_policy_agent(match[2], seed=seed, temperature=temperature, spec=spec)
    if match := re.fullmatch(EXEC, spec):
        return ExternalAgent(match[2], seed, float(match[1] or SECONDS), name=spec)
    if match := re.fullmatch(LLM, spec):
        with _naming_extra(spec, "llm"):
            from busenv.agents.external.llm_agent import LlmAgent
        obfuscate = int(match[2]) if match[2] else None
        return LlmAgent(match[3], seed, list_actions=not match[1], obfuscate=obfuscate, name=spec)
    kind = re.split("[@:]", spec)[0]
    if kind in NEEDS:
        raise ValueError(f"agent {quote(spec)}: {NEEDS[kind]}")
    hint = did_you_mean(kind, KINDS) or f"; allowed: {', '.join(SPECS)}"
    raise ValueError(f"unknown agent {quote(spec)}{hint}")


@contextmanager
def _naming_extra(spec: str, extra: str = "train") -> Iterator[None]:
    """Name the extra to install when an import for an agent fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_extra(error, extra, f"agent {quote(spec)}") from error


def _budget(simulations: str | None, seconds: str | None) -> tuple[int | None, float | None]:
    """Convert a spec's simulations or seconds to numbers."""
    return int(simulations) if simulations else None, float(seconds) if seconds else None

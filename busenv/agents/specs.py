"""Agent specs: their grammar, and the factory that builds agents from them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from busenv.agents.base import Agent
from busenv.agents.custom_agent import as_agent, load_object
from busenv.agents.external.external_agent import SECONDS, ExternalAgent
from busenv.agents.scripted import GreedyAgent, PlannerAgent, RandomAgent
from busenv.agents.uct_agent import UctAgent
from busenv.error_text import did_you_mean, missing_extra, quote

GROUP = "busenv.agents"  # entry points that register agents; name: the first word of a spec
PLUG_IN = "plug-in"

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
THREADS = "(?:@(?P<threads>[1-9][0-9]{0,8}))?"
BUDGET = f"(?:(?P<simulations>[1-9][0-9]{{0,8}})|(?P<seconds>{NUMBER})s)"
POLICY = f"(?:@(?P<temperature>{NUMBER}))?:(?P<model>.+)"
OPTIONS = "(?:@(?P<unlisted>unlisted))?(?:(?(unlisted),|@)obfuscate=(?P<obfuscate>[0-9]{1,20}))?"
# What follows the first word of a spec, and the forms that messages list.
GRAMMAR = {
    "random": ("", ("random",)),
    "greedy": ("", ("greedy",)),
    "planner": ("", ("planner",)),
    "uct": (f"{THREADS}:{BUDGET}", ("uct:SIMULATIONS", "uct:SECONDSs", "uct@THREADS:...")),
    "net": (POLICY, ("net:NAME", "net:PATH", "net@TEMPERATURE:...")),
    "ppo": (POLICY, ("ppo:... (the same as net:...)",)),
    "az": (
        f"{THREADS}:(?P<model>.+):{BUDGET}",
        ("az:NAME:SIMULATIONS", "az:PATH:SECONDSs", "az@THREADS:..."),
    ),
    "exec": (f"(?:@(?P<seconds>{NUMBER}))?:(?P<command>.+)", ("exec:COMMAND", "exec@SECONDS:...")),
    "py": (
        r":(?P<module>.+?\.py|[\w.]+):(?P<object>\w+)(?::(?P<argument>.*))?",
        ("py:MODULE:CLASS", "py:FILE.py:CLASS", "py:...:ARGUMENT"),
    ),
    "llm": (
        f"{OPTIONS}:(?P<language_model>.+)",
        ("llm:MODEL", "llm@unlisted:MODEL", "llm@obfuscate=SEED:MODEL"),
    ),
}
SPECS = tuple(form for _, forms in GRAMMAR.values() for form in forms)
NUMBERS = {
    "threads": int, "simulations": int, "obfuscate": int, "seconds": float, "temperature": float
}  # fmt: skip


@dataclass(frozen=True)
class AgentSpec:
    """A parsed spec; fields that its kind lacks have their defaults.

    kind: a key of GRAMMAR ("net" for "ppo" too), or PLUG_IN for an agent of another package.
    model: name or path of a network. language_model: of `llm`. command: of `exec`.
    module, object, argument: of `py`; a module is a path if it ends in ".py".
    """

    text: str
    kind: str
    threads: int = 1
    simulations: int | None = None
    seconds: float | None = None
    model: str = ""
    temperature: float | None = None
    command: str = ""
    module: str = ""
    object: str = ""
    argument: str | None = None
    language_model: str = ""
    unlisted: str = ""
    obfuscate: int | None = None
    plug_in: EntryPoint | None = None


def runs_code(text: str) -> bool:
    """Return whether a spec runs a program or Python code, or asks a server."""
    return re.match("(exec|py|llm)[@:]", text) is not None


def parse_spec(text: str) -> AgentSpec:
    """Parse a spec; ValueError, which lists what is allowed, for anything else."""
    if not isinstance(text, str):
        raise ValueError(f"spec is {quote(text)}; allowed: a text such as 'greedy' or 'uct:300'")
    kind = re.split("[@:]", text, maxsplit=1)[0]
    if kind not in GRAMMAR:
        for plug_in in entry_points(group=GROUP, name=kind):
            return AgentSpec(text, PLUG_IN, plug_in=plug_in)
        hint = did_you_mean(kind, GRAMMAR) or f"; allowed: {', '.join(SPECS)}"
        raise ValueError(f"unknown agent {quote(text)}{hint}")
    pattern, forms = GRAMMAR[kind]
    match = re.fullmatch(kind + pattern, text)
    if match is None:
        raise ValueError(f"agent {quote(text)}; allowed: {', '.join(forms)}")
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    fields: dict[str, Any] = {name: NUMBERS.get(name, str)(groups[name]) for name in groups}
    return AgentSpec(text, "net" if kind == "ppo" else kind, **fields)


def is_spec(text: str) -> bool:
    """Return whether a text is a spec; its model, program or class may be missing."""
    try:
        parse_spec(text)
    except ValueError:
        return False
    return True


def short_spec(text: str) -> str:
    """Return a spec without the folders of its files and without a program's arguments."""
    if not is_spec(text):  # its package may have been uninstalled
        return text
    spec = parse_spec(text)
    if spec.kind == "exec":
        return text.removesuffix(spec.command) + Path((spec.command.split() or [""])[0]).name
    if spec.kind == "py":
        return f"py:{Path(spec.module).name}:{spec.object}"
    if spec.model.endswith(".safetensors"):
        return text.replace(spec.model, Path(spec.model).stem)
    return text


def make_agent(spec: str, seed: int = 0) -> Agent:
    """Build an agent from its spec.

    spec: one of the forms in SPECS: `random`, `greedy`, `planner`, `uct:SIMULATIONS`,
        `net:NAME`, `az:NAME:SIMULATIONS`, `exec:COMMAND`, `py:FILE.py:CLASS`, `llm:MODEL` and
        their variants. A package registers specs that begin with NAME by an entry point NAME of the
        group "busenv.agents": a function of a spec and a seed that returns an agent, or another
        object with `act(game)` or `choose(games, board)`.
    seed: 0 to 2**64 - 1, until `reset` sets another.

    Raises ValueError for an unknown spec, a bad budget, a damaged model or a package that cannot
    be imported, FileNotFoundError for a missing model, program or file, and ModuleNotFoundError,
    which names the extra to install, when a network needs torch or a language model openai.
    """
    parsed = parse_spec(spec)
    search: dict[str, Any] = {"threads": parsed.threads, "seed": seed}
    match parsed.kind:
        case "random":
            return RandomAgent(seed)
        case "greedy":
            return GreedyAgent(seed)
        case "planner":
            return PlannerAgent(seed)
        case "uct":
            return UctAgent(parsed.simulations, parsed.seconds, **search, name=spec)
        case "az" | "net":
            with _naming_extra(spec):
                from busenv.agents.az_agent import AzAgent
                from busenv.agents.policy_agent import PolicyAgent
                from busenv.networks.model_files import load_model, model_path
            network, card, boards = load_model(model_path(parsed.model))
            if parsed.kind == "az":
                budget = parsed.simulations, parsed.seconds
                return AzAgent(network, boards, *budget, **search, name=spec)
            temperature = card.temperature if parsed.temperature is None else parsed.temperature
            return PolicyAgent(network, boards, name=spec, seed=seed, temperature=temperature)
        case "exec":
            seconds = SECONDS if parsed.seconds is None else parsed.seconds
            return ExternalAgent(parsed.command, seed, seconds, name=spec)
        case "llm":
            with _naming_extra(spec, "llm"):
                from busenv.agents.external.llm_agent import LlmAgent
            return LlmAgent(
                parsed.language_model,
                seed,
                list_actions=not parsed.unlisted,
                obfuscate=parsed.obfuscate,
                name=spec,
            )
        case "py":
            make = load_object(parsed.module, parsed.object)
            player = make() if parsed.argument is None else make(parsed.argument)
        case _:
            player = _load_plug_in(parsed)(spec, seed)
    agent = as_agent(player, spec)
    agent.reset(seed)
    return agent


@contextmanager
def _naming_extra(spec: str, extra: str = "train") -> Iterator[None]:
    """Name the extra to install when an import for an agent fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_extra(error, extra, f"agent {quote(spec)}") from error


def _load_plug_in(spec: AgentSpec) -> Any:
    """Return the function that builds the agents of an entry point."""
    assert spec.plug_in is not None
    try:
        return spec.plug_in.load()
    except Exception as error:
        raise ValueError(
            f"agent {quote(spec.text)}: {spec.plug_in.value} of an installed package cannot be "
            f"imported: {type(error).__name__}: {error}"
        ) from error

"""Agents that play with trained models: the policy alone, or a search that it guides."""

from __future__ import annotations

from busenv.agents.az_agent import AzAgent
from busenv.agents.policy_agent import PolicyAgent
from busenv.networks.model_files import load_with_boards


def load_policy_agent(
    name: str, *, seed: int = 0, temperature: float | None = None, spec: str = ""
) -> PolicyAgent:
    """Return an agent that plays a model's policy.

    It plays on the model's board, or on all boards of the size of the model's set.

    name: as for `busenv.networks.model_files.model_path`. temperature: by default the card's.
    Errors are those of `load_with_boards`.
    """
    network, card, board = load_with_boards(name)
    if temperature is None:
        temperature = card.temperature
    return PolicyAgent(
        network, board, name=spec or f"net:{name}", seed=seed, temperature=temperature
    )


def load_search_agent(
    name: str,
    simulations: int | None = None,
    seconds: float | None = None,
    *,
    threads: int = 1,
    seed: int = 0,
    spec: str = "",
) -> AzAgent:
    """Return an agent that searches guided by a model; see `AzAgent` and `load_policy_agent`."""
    network, _, board = load_with_boards(name)
    return AzAgent(
        network, board, simulations, seconds, threads=threads, seed=seed, name=spec or f"az:{name}"
    )

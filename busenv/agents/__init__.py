"""Agents, from random to trained.

`make_agent` builds an agent from a spec, such as `uct:300` or `net:city-4`. `SPECS` lists the
forms, and docs/agents.md describes them. `from_policy` makes an agent from a function of
observations and masks, such as a network. An agent selects an action in one game (`act`) or in each
of a batch of games (`choose`).
"""

from busenv.agents.base import Agent, AgentError
from busenv.agents.policy_agent import from_policy
from busenv.agents.specs import SPECS, make_agent

__all__ = ["SPECS", "Agent", "AgentError", "from_policy", "make_agent"]

"""Who plays: agents, from random to trained.

An agent chooses for a whole batch of games at once (`choose`), or for one (`act`). `make_agent`
builds one from a spec string: "random", "greedy", "ppo:FILE" for a trained policy, or
"exec:COMMAND" for a program of yours (EXEC.md).
"""

from agents.base import Agent, AgentError
from agents.registry import SPECS, make_agent

__all__ = ["SPECS", "Agent", "AgentError", "make_agent"]

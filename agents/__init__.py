"""Who plays: agents, from random to trained.

An agent chooses for a whole batch of games at once (`choose`), or for one (`act`). `make_agent`
builds one from a spec string: "random"; "greedy", one step ahead; "planner", one step ahead with a
plan; "uct:1000" or "uct:0.5s", a search by simulations or seconds, "uct@2:1000" on two threads;
"ppo:NAME" or "ppo:PATH" for a trained network of the package or of yours, "ppo@0.5:PATH" at
temperature 0.5, "ppo@0:PATH" for its favourites only; "exec:COMMAND" for a program of yours
(EXEC.md).
"""

from busenv.agents.base import Agent, AgentError
from busenv.agents.registry import SPECS, make_agent

__all__ = ["SPECS", "Agent", "AgentError", "make_agent"]

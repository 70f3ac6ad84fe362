"""Who plays: agents, from random to trained. `make_agent` builds one from a spec.

| spec | agent |
|---|---|
| `random` | each legal action with the same chance |
| `greedy` | what leaves it best off at once |
| `planner` | one decision ahead, by a tuned evaluation of the position |
| `uct:1000` | tree search, 1000 simulations a decision |
| `uct:0.5s` | tree search, half a second a decision |
| `uct@2:1000` | ... on two threads |
| `net:city-2` | the policy of a trained network of the package; `ppo:city-2` is the same |
| `net:runs/demo/model.safetensors` | ... of one of yours: a path stands wherever a name may |
| `net@0.5:city-2` | ... at temperature 0.5 (up to 100); at 0 its likeliest action only |
| `az:city-3:300` | tree search guided by a trained network, 300 simulations a decision |
| `az@2:city-3:0.5s` | ... half a second a decision, on two threads |
| `exec:python3 player.py` | a program of yours, in any language (external/EXEC.md) |
| `exec@0.5:python3 player.py` | ... with half a second for a decision |

An agent chooses for one game (`act`) or for a whole batch of games at once (`choose`).
"""

from busenv.agents.base import Agent, AgentError
from busenv.agents.registry import SPECS, make_agent

__all__ = ["SPECS", "Agent", "AgentError", "make_agent"]

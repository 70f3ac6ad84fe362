"""Agents, from random to trained. `make_agent` builds one from a spec.

| spec | agent |
|---|---|
| `random` | a legal action uniformly at random |
| `greedy` | one step of lookahead by a simple evaluation |
| `planner` | one decision of lookahead by a tuned evaluation |
| `uct:1000` | tree search, 1000 simulations per decision |
| `uct:0.5s` | tree search, half a second per decision |
| `uct@2:1000` | the same on two threads |
| `net:city-2` | the policy of a trained network of the package; `ppo:city-2` is the same |
| `net:runs/demo/model.safetensors` | the policy of your own model; `az:` takes paths too |
| `net@0.5:city-2` | the policy at temperature 0.5 (0 to 100); 0: the most likely action |
| `net:generated-1` | the policy of a network that plays every board |
| `az:city-4:300` | tree search guided by a trained network, 300 simulations per decision |
| `az@2:city-4:0.5s` | the same with half a second per decision, on two threads |
| `exec:python3 player.py` | your own program, in any language (external/EXEC.md) |
| `exec@0.5:python3 player.py` | the same with half a second per decision |
| `py:player.py:Player` | your own Python: an object of class `Player` with `act` or `choose` |
| `py:package.module:Player:text` | the same in an importable module, made by `Player("text")` |
| `llm:gpt-5-mini` | a language model behind an OpenAI-compatible endpoint |
| `llm@unlisted:gpt-5-mini` | the same without a list of the legal actions |
| `llm@obfuscate=7:gpt-5-mini` | the same in a game renamed by a seed |

`from_policy` makes an agent from a function of observations and masks, such as a network.

An agent selects an action in one game (`act`) or in each of a batch of games (`choose`).
"""

from busenv.agents.base import Agent, AgentError
from busenv.agents.building_types import check_building_types
from busenv.agents.policy_agent import from_policy
from busenv.agents.specs import SPECS, make_agent

__all__ = ["SPECS", "Agent", "AgentError", "check_building_types", "from_policy", "make_agent"]

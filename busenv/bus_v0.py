"""PettingZoo's interfaces under the name that they go by: see `busenv.envs.pettingzoo` (agents in
turns) and `busenv.envs.parallel` (all at once)."""

from busenv.envs.parallel import parallel_env
from busenv.envs.pettingzoo import env, raw_env

__all__ = ["env", "parallel_env", "raw_env"]

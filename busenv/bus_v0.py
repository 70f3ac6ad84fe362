"""PettingZoo's environments: `env` and `raw_env` (AEC), `parallel_env` (parallel)."""

from busenv.envs.parallel import parallel_env
from busenv.envs.pettingzoo import env, raw_env

__all__ = ["env", "parallel_env", "raw_env"]

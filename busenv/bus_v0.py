"""PettingZoo's interface under the name that it goes by: see `busenv.envs.pettingzoo`."""

from busenv.envs.pettingzoo import env, raw_env

__all__ = ["env", "raw_env"]

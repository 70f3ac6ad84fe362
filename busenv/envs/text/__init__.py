"""The game in words for language models: an environment, prompts, renamed games and the rules."""

from busenv.envs.text.environment import TextEnv

__all__ = ["TextEnv"]

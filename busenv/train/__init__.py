"""Training by self-play: PPO, imitation and expert iteration."""

from busenv.train.advantages import compute_gae

__all__ = ["compute_gae"]

"""Training by self-play: PPO, imitation and expert iteration."""

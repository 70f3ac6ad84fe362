"""Who learns: training by self-play."""

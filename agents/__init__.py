"""Who plays: agents, from random to trained."""

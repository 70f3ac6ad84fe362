"""A policy of JAX as an agent.

    busenv rate py:agents/jax_policy.py:make:policy.npz --against random --games 100

`policy.npz` holds the arrays `w1`, `b1`, `w2` and `b2` of a network with one hidden layer. Without
a file the weights are random. Replace `policy` by the function that you trained.
"""

import jax
import jax.numpy as jnp
import numpy as np

import busenv
from busenv.agents import Agent, from_policy


@jax.jit
def policy(weights: dict[str, jax.Array], rows: jax.Array) -> jax.Array:
    """Observations, uint8 (n, size), to logits, (n, num_actions)."""
    hidden = jax.nn.relu(rows.astype(jnp.float32) / 255 @ weights["w1"] + weights["b1"])
    return hidden @ weights["w2"] + weights["b2"]


def make(path: str = "") -> Agent:
    """Return the agent. path: the file of the weights; random weights without one."""
    board = busenv.load_board("city")
    size, width = busenv.ObservationLayout(board).size, 128
    random = np.random.default_rng(0)
    weights = {
        "w1": random.normal(0, size**-0.5, (size, width)),
        "b1": np.zeros(width),
        "w2": random.normal(0, width**-0.5, (width, board.num_actions)),
        "b2": np.zeros(board.num_actions),
    }
    if path:
        weights = dict(np.load(path))
    weights = {name: jnp.asarray(array, jnp.float32) for name, array in weights.items()}
    return from_policy(lambda rows, masks: policy(weights, rows), relative_types=False)


if __name__ == "__main__":
    game = busenv.Game(seed=1)
    print(game.describe(make().act(game)))

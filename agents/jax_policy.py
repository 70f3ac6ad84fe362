"""A policy of JAX as an agent.

    busenv rate py:agents/jax_policy.py:make:policy.npz --against random --games 100

`policy.npz` holds the arrays `w1`, `b1`, `w2` and `b2` of a network with one hidden layer. Without
a file the weights are random. `train/jax_ppo.py` trains and writes such weights.
"""

import jax
import jax.numpy as jnp
import numpy as np

import busenv
from busenv.agents import Agent, from_policy

SCALE = busenv.ObservationLayout(busenv.load_board("city")).scale  # brings bytes to 0..1


@jax.jit
def policy(weights: dict[str, jax.Array], rows: jax.Array) -> jax.Array:
    """Observations, uint8 (n, size), to logits, (n, num_actions)."""
    hidden = jax.nn.relu(rows * SCALE @ weights["w1"] + weights["b1"])
    return hidden @ weights["w2"] + weights["b2"]


def make(path: str = "") -> Agent:
    """Return the agent. path: the file of the weights; random weights without one."""
    board, width = busenv.load_board("city"), 128
    size = len(SCALE)
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
    # relative_types=True if the policy was trained with that setting of the environment
    return from_policy(
        lambda rows, masks: policy(weights, rows), relative_types=False, temperature=0.25
    )


if __name__ == "__main__":
    game = busenv.Game(seed=1)
    print(game.describe(make().act(game)))

"""PPO from every seat of the self-play environment in JAX, in one file to copy and change.

    python train/jax_ppo.py
    busenv rate py:agents/jax_policy.py:make:policy.npz --against greedy --games 400

In half of the games the learner plays every seat, in the other half one seat against three copies
of `greedy`. The script writes the weights to `policy.npz`, which `agents/jax_policy.py` reads.
"""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

import busenv
from busenv.train import compute_gae

total = 500_000  # decisions of the learner
num_envs, steps, batch, width = 256, 64, 512, 128
gamma, gae_lambda, clip, entropy_weight, value_weight, rate = 0.99, 0.95, 0.2, 0.02, 0.5, 1e-3
GREEDY = 2  # in `seat_owners` of the environment
SCALE = busenv.ObservationLayout(busenv.load_board("city")).scale  # brings bytes to 0..1


def evaluate(weights, rows, masks):
    """Observations and masks to log-probabilities, (n, num_actions), and values, (n,)."""
    hidden = jax.nn.relu(rows * SCALE @ weights["w1"] + weights["b1"])
    logits = jnp.where(masks, hidden @ weights["w2"] + weights["b2"], -1e9)
    return jax.nn.log_softmax(logits), hidden @ weights["w3"]


@jax.jit
def act(weights, rows, masks, key):
    """Sample actions; return them, their log-probabilities, and values."""
    log_probs, values = evaluate(weights, rows, masks)
    actions = jax.random.categorical(key, log_probs)
    return actions, jnp.take_along_axis(log_probs, actions[:, None], 1)[:, 0], values


def loss(weights, rows, masks, actions, old_log_probs, advantages, targets):
    """The loss of PPO on a minibatch."""
    log_probs, values = evaluate(weights, rows, masks)
    taken = jnp.take_along_axis(log_probs, actions[:, None], 1)[:, 0]
    ratio = jnp.exp(taken - old_log_probs)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    clipped = jnp.clip(ratio, 1 - clip, 1 + clip)
    policy_loss = -jnp.minimum(ratio * advantages, clipped * advantages).mean()
    entropy = -(jnp.exp(log_probs) * log_probs).sum(1).mean()
    value_loss = jnp.square(values - targets).mean()
    return policy_loss + value_weight * value_loss - entropy_weight * entropy


@jax.jit
def update(weights, moments, count, samples):
    """A step of Adam on a minibatch."""
    gradients = jax.grad(loss)(weights, *samples)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradients)
    second = jax.tree.map(lambda m, g: 0.999 * m + 0.001 * g * g, moments[1], gradients)
    corrected = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    weights = jax.tree.map(
        lambda w, m, v: w - corrected * m / (jnp.sqrt(v) + 1e-5), weights, first, second
    )
    return weights, (first, second)


envs = gymnasium.make_vec(
    "busenv/BusSelfPlay-v0",
    num_envs=num_envs,
    reward="margin",
    skip_forced=True,  # decisions with one legal action teach nothing
    autoreset_mode="SameStep",  # every step is a decision
)
envs.unwrapped.batch.seat_owners[: num_envs // 2, 1:] = GREEDY
size, num_actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
random = np.random.default_rng(1)
weights = {
    "w1": random.normal(0, (2 / size) ** 0.5, (size, width)),
    "b1": np.zeros(width),
    "w2": random.normal(0, 0.01, (width, num_actions)),
    "b2": np.zeros(num_actions),
    "w3": random.normal(0, 0.01, width),
}
weights = {name: jnp.asarray(array, jnp.float32) for name, array in weights.items()}
moments = (jax.tree.map(jnp.zeros_like, weights),) * 2
key, count, decisions = jax.random.key(1), 0, 0
rows, info = envs.reset(seed=1)
while decisions < total:
    rollout = []
    for _ in range(steps):
        key, draw = jax.random.split(key)
        masks, seats = info["action_mask"] == 1, info["seat"]
        actions, log_probs, values = map(np.asarray, act(weights, rows, masks, draw))
        step = rows, masks, actions, log_probs, values, seats
        rows, _, ended, _, info = envs.step(actions)
        rollout.append((*step, info["rewards"] / 5, ended))
    *samples, values, seats, rewards, ended = map(np.stack, zip(*rollout, strict=True))
    _, _, next_values = act(weights, rows, info["action_mask"] == 1, key)
    advantages, has_advantage = compute_gae(
        values=values,
        rewards=rewards,
        seats=seats,
        terminations=ended,
        next_values=np.asarray(next_values),
        next_seats=info["seat"],
        gamma=gamma,
        gae_lambda=gae_lambda,
    )
    arrays = *samples, advantages, advantages + values
    arrays = [array.reshape(steps * num_envs, *array.shape[2:]) for array in arrays]
    indices = random.permutation(np.flatnonzero(has_advantage))
    for start in range(0, len(indices) - batch + 1, batch):  # all of one size: compiled once
        count += 1
        chosen = indices[start : start + batch]
        weights, moments = update(weights, moments, count, [array[chosen] for array in arrays])
    decisions += len(indices)
    print(f"{decisions} decisions")
np.savez("policy.npz", **{name: np.asarray(array) for name, array in weights.items()})

"""Proximal policy optimisation on the public vector environment, on a CPU or a GPU.

A rollout is a fixed number of steps over games that continue between iterations (Schulman et al.
2017, "Proximal policy optimization algorithms"). Each seat of each game is a trajectory of its own.
The file reads from top to bottom: line-ups, rollout, advantages, update. All tensors are on
the device of the environment; T are the steps of a rollout, N the games.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from typing import Any, NamedTuple, TypeVar

import torch
from gymnasium.vector import AutoresetMode
from torch import nn

from busenv.core.state import MAX_PLAYERS
from busenv.train.advantages import compute_gae
from busenv.train.config import PPOConfig
from busenv.train.policies import Opponent, Policy, forward, sample, select, uses_bfloat16
from busenv.train.ppo_loss import Decisions, ppo_loss

LEARNER = 0  # owner of a seat: `seat_owners` of the environment
NO_OWNER = 255  # in place of an owner where the game is over
# Share of games in which copies of one opponent hold all seats but one, as in ratings: several
# copies of an opponent play differently from one among others.
SINGLE_SHARE = 0.4
MIXING_STEPS = 256  # of random play before the first rollout

Item = TypeVar("Item")
Result = TypeVar("Result")


class LineUps(NamedTuple):
    """How the owners of a game's seats are drawn.

    weights: float32, (K,), of the owners 1 to K in draws of an opponent; the sum must be positive
        unless `opponent_share` is 0.
    opponent_share: probability that a seat is an opponent's, in mixed games, which are a
        share 1 - SINGLE_SHARE of all. One seat of each game is always the learner's.
    """

    weights: torch.Tensor
    opponent_share: float = 0.5

    def draw(self, games: int, min_players: int, generator: torch.Generator) -> torch.Tensor:
        """Draw the owners of all seats: uint8, (games, 5), 0 for the learner.

        min_players: smallest number of players in a game.
        """
        device, shape = self.weights.device, (games, MAX_PLAYERS)
        owners = torch.zeros(shape, dtype=torch.uint8, device=device)
        if not self.opponent_share:
            return owners
        count = games * MAX_PLAYERS
        drawn = torch.multinomial(self.weights, count, replacement=True, generator=generator)
        drawn = (drawn + 1).to(torch.uint8).view(shape)

        def uniform(*size: int) -> torch.Tensor:
            return torch.rand(size, generator=generator, device=device)

        single = uniform(games, 1) < SINGLE_SHARE
        drawn = torch.where(single, drawn[:, :1], drawn)
        owners = torch.where(single | (uniform(*shape) < self.opponent_share), drawn, owners)
        learner = (uniform(games, 1) * min_players).long()
        return owners.scatter_(1, learner, LEARNER)


class Rollout(NamedTuple):
    """Buffers of a rollout, allocated once.

    observations: uint8, (T, N, size). masks: bool, (T, N, num_actions). actions, seats: int64,
    (T, N), of the decisions. log_probs, values: float32, (T, N), of the learner's decisions.
    is_learners: bool, (T, N), whether the learner decides. rewards: float32, (T, N, 5), of all
    seats after the decision, in units. terminations: bool, (T, N).
    next_seats: int64, (N,), the seat of the decision after the rollout. next_values: float32, (N,),
    its value. is_bootstrapped: bool, (N,), whether the learner takes that decision.
    """

    observations: torch.Tensor
    masks: torch.Tensor
    actions: torch.Tensor
    seats: torch.Tensor
    log_probs: torch.Tensor
    values: torch.Tensor
    is_learners: torch.Tensor
    rewards: torch.Tensor
    terminations: torch.Tensor
    next_values: torch.Tensor
    next_seats: torch.Tensor
    is_bootstrapped: torch.Tensor


def make_rollout(
    steps: int, games: int, size: int, num_actions: int, device: torch.device
) -> Rollout:
    """Allocate the buffers of a rollout."""

    def zeros(dtype: torch.dtype, *shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, device=device)

    return Rollout(
        zeros(torch.uint8, steps, games, size),
        zeros(torch.bool, steps, games, num_actions),
        zeros(torch.int64, steps, games),
        zeros(torch.int64, steps, games),
        zeros(torch.float32, steps, games),
        zeros(torch.float32, steps, games),
        zeros(torch.bool, steps, games),
        zeros(torch.float32, steps, games, MAX_PLAYERS),
        zeros(torch.bool, steps, games),
        zeros(torch.float32, games),
        zeros(torch.int64, games),
        zeros(torch.bool, games),
    )


def columns(rollout: Rollout, games: slice) -> Rollout:
    """Return the buffers of some of the games, which share their memory with the rollout."""
    by_step = (tensor[:, games] for tensor in rollout[:9])
    return Rollout(*by_step, *(tensor[games] for tensor in rollout[9:]))


def in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call a function with each item, each in a thread of its own if there are several.

    Torch's own threads are about as fast, but spin while they wait: with them, two runs on the same
    cores are several times slower.
    """
    if len(items) == 1:
        return [function(items[0])]
    with ThreadPoolExecutor(len(items)) as pool:
        return [*pool.map(function, items)]


class Games:
    """N games of a self-play environment, which continue from one rollout to the next.

    env: `gymnasium.make_vec("busenv/BusSelfPlay-v0", ...)`, with copy=False for speed. With the
        autoreset mode NEXT_STEP, a step separates two games; the next line-up is drawn before it.
    line_ups: how owners of seats are drawn; `weights` may be changed between rollouts.

    The tensors below are overwritten by every step.
    observations: uint8, (N, size). masks: bool, (N, num_actions). seats: int64, (N,), of the next
        decision.
    owners, final_owners: uint8, (N, 5), owners of the seats, and those of the last game that ended
        in each row.
    is_over: bool, (N,), whether the last step ended the game.

    Raises ValueError for another autoreset mode.
    """

    def __init__(self, env: Any, line_ups: LineUps) -> None:
        batch = env.unwrapped.batch
        if (mode := batch.autoreset_mode) != AutoresetMode.NEXT_STEP:
            raise ValueError(f"autoreset_mode is {mode.value!r}; allowed: 'NextStep'")
        self.env, self.batch, self.line_ups = env, batch, line_ups
        self.device = line_ups.weights.device
        self.observations = torch.as_tensor(batch.observations)
        self.masks = torch.as_tensor(batch.masks)
        self.seats, self.is_over = torch.as_tensor(batch.seats), torch.as_tensor(batch.terminations)
        self.owners = torch.as_tensor(batch.seat_owners)
        self.final_owners = self.owners.clone()

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the sizes of an observation and of a mask."""
        return self.observations.shape[1], self.masks.shape[1]

    def reset(self, seed: int, generator: torch.Generator) -> None:
        """Start new games with new line-ups, and play them to different stages at random.

        Otherwise all games would begin and end together, and the first rollouts would each show one
        stage of the game only. seed: of the environment.
        """
        count = len(self.owners)
        self.owners.copy_(self._draw(count, generator))
        self.env.reset(seed=seed)
        for _ in range(MIXING_STEPS):
            self.step(sample(self.masks.float().log(), generator), generator)
            drawn = torch.rand(count, generator=generator, device=self.device)
            restarts = drawn < 1 / MIXING_STEPS
            if restarts.any():
                owners = self._draw(count, generator)
                self.owners.copy_(torch.where(restarts[:, None], owners, self.owners))
                self.env.reset(options={"reset_mask": restarts.cpu().numpy()})

    def _draw(self, games: int, generator: torch.Generator) -> torch.Tensor:
        return self.line_ups.draw(games, min(self.batch.player_counts), generator)

    def step(self, actions: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Take one action in each game; where one is over, start the next with a new line-up.

        Returns rewards, float32 (N, 5); the next step overwrites them.
        """
        rows = self.is_over.nonzero()[:, 0]
        if len(rows):
            self.owners[rows] = self._draw(len(rows), generator)
        self.env.step(actions.numpy() if self.device.type == "cpu" else actions)
        ended = self.is_over[:, None]
        self.final_owners.copy_(torch.where(ended, self.owners, self.final_owners))
        return torch.as_tensor(self.batch.rewards)

    def deciders(self) -> torch.Tensor:
        """Return the owner of the seat that decides in each game: uint8, (N,).

        NO_OWNER where the game is over.
        """
        owners = self.owners.gather(1, self.seats[:, None])[:, 0]
        return owners.masked_fill(self.is_over, NO_OWNER)


@torch.no_grad()
def play_rollout(
    games: Games,
    policy: Policy,
    opponents: dict[int, Opponent],
    rollout: Rollout,
    *,
    settings: PPOConfig,
    generator: torch.Generator,
) -> None:
    """Play T steps of N games and write them to the buffers.

    policy: of the learner. opponents: by owner, from 3 on. The environment plays `random` (1) and
    `greedy` (2) itself. settings: only `reward_unit` is used.
    """
    for t in range(len(rollout.actions)):
        observations, masks = games.observations, games.masks
        rollout.observations[t], rollout.masks[t] = observations, masks
        rollout.seats[t] = games.seats
        deciders = games.deciders()
        rollout.is_learners[t] = deciders == LEARNER
        actions = torch.zeros_like(games.seats)
        rows = rollout.is_learners[t].nonzero()[:, 0]
        actions[rows], rollout.log_probs[t, rows], rollout.values[t, rows] = policy(
            observations, masks, rows
        )
        for owner, choose in opponents.items():
            rows = (deciders == owner).nonzero()[:, 0]
            if len(rows):
                actions[rows] = choose(observations, masks, rows)
        rollout.actions[t] = actions
        rewards = games.step(actions, generator)
        torch.div(rewards, settings.reward_unit, out=rollout.rewards[t])
        rollout.terminations[t] = games.is_over
    rollout.is_bootstrapped.copy_(games.deciders() == LEARNER)
    rollout.next_seats.copy_(games.seats)
    rows = rollout.is_bootstrapped.nonzero()[:, 0]
    rollout.next_values.zero_()
    _, _, rollout.next_values[rows] = policy(games.observations, games.masks, rows)


def rollout_gae(
    rollout: Rollout, gamma: float, gae_lambda: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the advantages of a rollout, and which of its decisions have one: `compute_gae`."""
    advantages, has_advantage = compute_gae(
        values=rollout.values,
        rewards=rollout.rewards,
        seats=rollout.seats,
        terminations=rollout.terminations,
        next_values=rollout.next_values,
        next_seats=rollout.next_seats,
        is_learners=rollout.is_learners,
        is_bootstrapped=rollout.is_bootstrapped,
        gamma=gamma,
        gae_lambda=gae_lambda,
    )
    return advantages, has_advantage


def compute_gradients(
    network: nn.Module,
    decisions: Decisions,
    *,
    minibatch_size: int,
    settings: PPOConfig,
    bfloat16: bool = False,
) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """Compute what some decisions of a minibatch add to the gradients of PPO's loss.

    decisions: with advantages that are normalised over the minibatch. bfloat16: whether matrix
    products are computed in bfloat16, except on a CPU those of the first layer.

    Returns the gradients by parameter of the network, and what the decisions add to the five means
    of `ppo_loss` over the minibatch, float32, (5,).
    """
    logits, values = forward(network, decisions.observations, bfloat16)
    loss, means = ppo_loss(logits, values, decisions, settings)
    share = len(values) / minibatch_size
    return torch.autograd.grad(loss * share, [*network.parameters()]), means * share


def update(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    *,
    settings: PPOConfig,
    generator: torch.Generator,
) -> dict[str, float]:
    """Learn from a rollout.

    settings: of minibatches, advantages, loss and precision, and on a CPU of the threads that share
    the computation of a gradient. The learning rate is the optimizer's.

    Returns the number of decisions that had an advantage, `explained_variance` of the returns by
    the values, and means over the minibatches of losses and other statistics, by name.

    Raises ValueError when no decision of the rollout has an advantage.
    """
    advantages, has_advantage = rollout_gae(rollout, settings.gamma, settings.gae_lambda)
    returns = advantages + rollout.values
    indices = has_advantage.flatten().nonzero()[:, 0]
    if not len(indices):
        raise ValueError("no decision of the rollout has an advantage; increase steps or games")
    decisions = Decisions(
        *(
            tensor.flatten(0, 1)
            for tensor in (
                rollout.observations, rollout.masks, rollout.actions, rollout.log_probs,
                advantages, returns,
            )
        )
    )  # fmt: skip
    parameters, statistics = [*network.parameters()], []
    device = advantages.device
    threads = settings.threads if device.type == "cpu" else 1
    gradients = partial(
        compute_gradients,
        network,
        settings=settings,
        bfloat16=uses_bfloat16(settings.precision, device),
    )
    for rows in _minibatches(indices, settings, generator):
        minibatch = Decisions(*select(rows, *decisions))
        std, mean = torch.std_mean(minibatch.advantages, correction=0)
        minibatch = minibatch._replace(advantages=(minibatch.advantages - mean) / (std + 1e-8))
        pieces = minibatch.split(min(threads, len(rows)))
        results = in_threads(partial(gradients, minibatch_size=len(rows)), pieces)
        for parameter, *parts in zip(parameters, *(parts for parts, _ in results), strict=True):
            parameter.grad = reduce(torch.add, parts)
        grad_norm = nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
        optimizer.step()
        scalars = torch.stack([scalars for _, scalars in results]).sum(dim=0)
        statistics.append(torch.cat((scalars, grad_norm[None])))
    means = torch.stack(statistics).mean(dim=0).tolist()
    names = "policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "grad_norm"
    variance = decisions.returns[indices].var().clamp(min=1e-8)
    unexplained = decisions.advantages[indices].var() / variance
    return {
        "decisions": len(indices),
        **dict(zip(names, means, strict=True)),
        "explained_variance": 1 - float(unexplained),
    }


def _minibatches(
    indices: torch.Tensor, settings: PPOConfig, generator: torch.Generator
) -> Iterator[torch.Tensor]:
    """All indices in random order, once an epoch, in pieces of nearly equal size."""
    pieces = max(-(-len(indices) // settings.batch_size), 1)
    for _ in range(settings.epochs):
        order = torch.randperm(len(indices), generator=generator, device=indices.device)
        yield from indices[order].tensor_split(pieces)

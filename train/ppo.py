"""Proximal policy optimisation with action masks (Schulman et al. 2017), and imitation before it.

`trajectory_advantages` and `clipped_policy_loss` are the algorithm; `PPO.update` applies them to
the decisions of a rollout, `PPO.imitate` learns from a teacher instead.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from busenv.agents.networks.mlp import expected_log_probs, mask_logits
from busenv.core.jit import kernel
from busenv.train.config import PPOConfig
from busenv.train.selfplay import Decisions

LOWEST_LEARNING_RATE = 0.05  # at the end of a run, as a share of that at the beginning
IMITATION_LEARNING_RATE = 1e-3
IMITATION_BATCH = 512  # decisions; imitation learns faster by many small updates, PPO by fewer
TEACHER_POWER = 2  # exponent that sharpens a teacher's probabilities; PPO samples at temperature 1


@kernel
def trajectory_advantages(
    trajectories: np.ndarray,
    rewards: np.ndarray,
    values: np.ndarray,
    gamma: float,
    gae_lambda: float,
) -> np.ndarray:
    """Compute advantages by generalized advantage estimation (Schulman et al. 2016).

    The decisions of one seat in one game form a trajectory, which ends with its last row.

    trajectories: int64, (R,), that of each decision, 0 or more; rows in the order of time. rewards:
    float32 or float64, (R,), what the seat receives from this decision until its next one, or until
    the end of its game. values: float32, (R,), predicted before the decision.

    Returns advantages, float32, (R,); `values` plus these are the returns.
    """
    advantages = np.zeros(len(trajectories), np.float32)
    next_value = np.zeros(trajectories.max() + 1 if len(trajectories) else 0)
    next_advantage = np.zeros_like(next_value)
    for row in range(len(trajectories) - 1, -1, -1):
        at = trajectories[row]
        delta = rewards[row] + gamma * next_value[at] - values[row]
        next_advantage[at] = delta + gamma * gae_lambda * next_advantage[at]
        next_value[at] = values[row]
        advantages[row] = next_advantage[at]
    return advantages


def clipped_policy_loss(
    log_probs: torch.Tensor,
    old_log_probs: torch.Tensor,
    advantages: torch.Tensor,
    clip_range: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compute the clipped surrogate loss of PPO, to be minimised.

    log_probs, old_log_probs: float32, (N,), of the actions taken, by the policy that learns and by
    the one that played. advantages: float32, (N,), normalised by the caller.

    Returns three scalars: the mean loss, and, without gradient, an estimate of the Kullback-Leibler
    divergence of the two policies (Schulman 2020, "Approximating KL divergence") and the share of
    ratios outside of the clip range.
    """
    log_ratio = log_probs - old_log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
    loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
    outside = ((ratio - 1).abs() > clip_range).float().mean()
    return loss, (ratio - 1 - log_ratio).mean().detach(), outside


class PPO:
    """Updates of a network by the settings of a run.

    network: observations (uint8, (N, size)) to logits (N, num_actions) and values (N, 1), on the
    CPU, where it plays. A copy learns on the device of the settings. Their `precision` selects
    bfloat16 for matrix products; everything else is float32.

    Raises ValueError when the device is "cuda" and there is no GPU.
    """

    def __init__(self, network: nn.Module, config: PPOConfig) -> None:
        self.network, self.config, self.device = network, config, find_device(config.device)
        self._copy = copy.deepcopy(network).to(self.device)
        self.optimizer = torch.optim.Adam(self._copy.parameters(), eps=1e-5, fused=True)
        self._bfloat16 = uses_bfloat16(config.precision, self.device)

    def update(
        self, decisions: Decisions, progress: float, rng: np.random.Generator
    ) -> dict[str, float]:
        """Learn from the decisions of a rollout; return losses and other statistics by name.

        progress: of the run, 0 to 1, by which the learning rate falls. rng: orders minibatches.
        """
        config = self.config
        learning_rate = config.learning_rate * max(1 - progress, LOWEST_LEARNING_RATE)
        self._set_learning_rate(learning_rate)
        advantages = trajectory_advantages(
            decisions.trajectories, decisions.rewards, decisions.values,
            config.gamma, config.gae_lambda,
        )  # fmt: skip
        returns = decisions.values + advantages
        observations, masks, actions, old_log_probs, advantage, target = map(
            self._tensor,
            (
                decisions.observations, decisions.masks, decisions.actions, decisions.log_probs,
                advantages, returns,
            ),
        )  # fmt: skip
        statistics = []
        self._copy.load_state_dict(self.network.state_dict())
        for rows in self._minibatches(len(actions), config.batch_size, config.epochs, rng):
            log_probs, values, entropy = self._evaluate(observations[rows], masks[rows])
            taken = log_probs.gather(1, actions[rows, None])[:, 0]
            normalised = advantage[rows]
            normalised = (normalised - normalised.mean()) / (normalised.std(correction=0) + 1e-8)
            policy_loss, approx_kl, clip_fraction = clipped_policy_loss(
                taken, old_log_probs[rows], normalised, config.clip_range
            )
            value_loss = nn.functional.mse_loss(values, target[rows])
            loss = policy_loss + config.value_coef * value_loss - config.entropy_coef * entropy
            grad_norm = self._step(loss)
            scalars = (policy_loss, value_loss, -entropy, approx_kl, clip_fraction, grad_norm)
            statistics.append(torch.stack(scalars).detach())
        self.network.load_state_dict(self._copy.state_dict())
        unexplained = float(advantages.var() / max(returns.var(), 1e-8))
        names = (
            "policy_gradient_loss", "value_loss", "entropy_loss", "approx_kl", "clip_fraction",
            "grad_norm",
        )  # fmt: skip
        return _means(names, statistics) | {
            "train/explained_variance": 1 - unexplained,
            "train/learning_rate": learning_rate,
        }

    def imitate(self, decisions: Decisions, rng: np.random.Generator) -> dict[str, float]:
        """Learn a teacher's action probabilities by cross-entropy, and values from the returns.

        Returns are computed from the games alone, because the network's values are not trained yet.
        """
        config = self.config
        self._set_learning_rate(IMITATION_LEARNING_RATE)
        no_values = np.zeros_like(decisions.values)
        returns = trajectory_advantages(
            decisions.trajectories, decisions.rewards, no_values, config.gamma, 1.0
        )
        observations, masks, teacher, target = map(
            self._tensor,
            (decisions.observations, decisions.masks, decisions.teacher_probabilities, returns),
        )
        statistics = []
        self._copy.load_state_dict(self.network.state_dict())
        for rows in self._minibatches(len(target), IMITATION_BATCH, config.imitation_epochs, rng):
            log_probs, values, entropy = self._evaluate(observations[rows], masks[rows])
            probabilities = teacher[rows] ** TEACHER_POWER
            probabilities = probabilities / probabilities.sum(dim=1, keepdim=True)
            policy_loss = -expected_log_probs(probabilities, log_probs, masks[rows]).mean()
            value_loss = nn.functional.mse_loss(values, target[rows])
            grad_norm = self._step(policy_loss + config.value_coef * value_loss)
            statistics.append(torch.stack((policy_loss, value_loss, -entropy, grad_norm)).detach())
        self.network.load_state_dict(self._copy.state_dict())
        names = ("imitation_loss", "value_loss", "entropy_loss", "grad_norm")
        return _means(names, statistics) | {"train/learning_rate": IMITATION_LEARNING_RATE}

    def _evaluate(
        self, observations: torch.Tensor, masks: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Log-probabilities (N, num_actions), values (N,), and the mean entropy over legal ones."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._bfloat16):
            if self._bfloat16:  # exact for bytes, and without a float32 copy
                observations = observations.bfloat16()
            logits, values = self._copy(observations)
        log_probs = mask_logits(logits.float(), masks).log_softmax(dim=1)
        entropy = -expected_log_probs(log_probs.exp(), log_probs, masks).mean()
        return log_probs, values.float()[:, 0], entropy

    def _minibatches(
        self, count: int, batch_size: int, epochs: int, rng: np.random.Generator
    ) -> Iterator[torch.Tensor]:
        """Indices of all rows in random order, once an epoch, in pieces of nearly equal size."""
        for _ in range(epochs):
            yield from self._tensor(rng.permutation(count)).tensor_split(-(-count // batch_size))

    def _step(self, loss: torch.Tensor) -> torch.Tensor:
        """Update the copy; returns the norm of the gradient before it is clipped."""
        self.optimizer.zero_grad()
        loss.backward()
        parameters = self._copy.parameters()
        grad_norm = nn.utils.clip_grad_norm_(parameters, self.config.max_grad_norm)
        self.optimizer.step()
        return grad_norm

    def _set_learning_rate(self, learning_rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)


def find_device(setting: str) -> torch.device:
    """Return where PPO learns: "cpu", "cuda", or "auto", a GPU if torch finds one."""
    if setting == "cuda" and not torch.cuda.is_available():
        raise ValueError("device is 'cuda', but torch finds no GPU here; allowed: auto, cpu")
    if setting == "auto":
        setting = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(setting)


def uses_bfloat16(precision: str, device: torch.device) -> bool:
    """Whether matrix products are computed in bfloat16.

    precision: "float32", "bfloat16", or "auto": bfloat16 on CPUs with instructions for it.
    """
    if precision == "auto":  # torch 2.6 keeps the queries private
        in_hardware = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        return bool(device.type == "cpu" and in_hardware)
    return precision == "bfloat16"


def _means(names: tuple[str, ...], statistics: list[torch.Tensor]) -> dict[str, float]:
    means = torch.stack(statistics).mean(dim=0).tolist()
    return {f"train/{name}": value for name, value in zip(names, means, strict=True)}

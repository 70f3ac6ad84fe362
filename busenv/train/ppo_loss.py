"""The loss of PPO, in PyTorch and in compiled code for the CPU.

The compiled loss computes exponentials and gradients of legal actions only, about one in forty.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable

from busenv.core.jit import kernel
from busenv.train.config import PPOConfig
from busenv.train.policies import masked_log_probs


class Decisions(NamedTuple):
    """Decisions to learn from, one to a row.

    observations: uint8, (B, size). masks: bool, (B, num_actions). actions: int64, (B,). log_probs:
    float32, (B,), of the policy that played. advantages, returns: float32, (B,).
    """

    observations: torch.Tensor
    masks: torch.Tensor
    actions: torch.Tensor
    log_probs: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor

    def split(self, pieces: int) -> list[Decisions]:
        """Split the decisions into pieces of nearly equal size."""
        split = (tensor.tensor_split(pieces) for tensor in self)
        return [Decisions(*piece) for piece in zip(*split, strict=True)]


def ppo_loss(
    logits: torch.Tensor, values: torch.Tensor, decisions: Decisions, settings: PPOConfig
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the loss of PPO, a mean over decisions, to be minimised.

    logits: float32, (B, num_actions), of all actions. values: float32, (B, 1). decisions: their
    advantages are normalised by the caller.

    Returns the loss, and five means without gradient, float32, (5,): the clipped surrogate loss of
    the policy (Schulman et al. 2017), the squared error of the values, the entropy, an estimate of
    the Kullback-Leibler divergence of the policies (Schulman 2020, "Approximating KL divergence"),
    and the share of ratios outside of the clip range.
    """
    function = _CompiledLoss.apply if logits.device.type == "cpu" else torch_loss
    return function(logits, values, decisions, settings)


def torch_loss(
    logits: torch.Tensor, values: torch.Tensor, decisions: Decisions, settings: PPOConfig
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the same as `ppo_loss` in PyTorch, on any device."""
    log_probs, advantages = masked_log_probs(logits, decisions.masks), decisions.advantages
    entropy = -(log_probs.softmax(dim=1) * log_probs).sum(dim=1).mean()
    log_ratio = log_probs.gather(1, decisions.actions[:, None])[:, 0] - decisions.log_probs
    ratio, clip_range = log_ratio.exp(), settings.clip_range
    clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
    policy_loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
    value_loss = nn.functional.mse_loss(values[:, 0], decisions.returns)
    loss = policy_loss + settings.value_coef * value_loss - settings.entropy_coef * entropy
    approx_kl = (ratio - 1 - log_ratio).mean()
    clip_fraction = ((ratio - 1).abs() > clip_range).float().mean()
    means = torch.stack((policy_loss, value_loss, entropy, approx_kl, clip_fraction))
    return loss, means.detach()


class _CompiledLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        logits: torch.Tensor,
        values: torch.Tensor,
        decisions: Decisions,
        settings: PPOConfig,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        gradients = torch.zeros_like(logits), torch.zeros_like(values)
        means = logits.new_empty(5)
        tensors = (logits.detach(), values.detach(), *decisions[1:], *gradients, means)
        _write_loss(
            *(tensor.numpy() for tensor in tensors),
            settings.clip_range,
            settings.value_coef,
            settings.entropy_coef,
        )
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(means)
        loss = means[0] + settings.value_coef * means[1] - settings.entropy_coef * means[2]
        return loss, means

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        of_logits, of_values = ctx.saved_tensors
        return of_logits * gradients[0], of_values * gradients[0], None, None


@kernel
def _write_loss(
    logits, values, masks, actions, old_log_probs, advantages, returns, logit_gradients,
    value_gradients, means, clip_range, value_coef, entropy_coef,
):  # fmt: skip
    """Write the means of `ppo_loss`, and the gradients of the loss, whose arrays hold zeros.

    ValueError for an action that is not legal.
    """
    count, num_actions = logits.shape
    legal, probs = np.empty(num_actions, np.int64), np.empty(num_actions)
    policy_loss = value_loss = total_entropy = divergence = num_clipped = 0.0
    for i in range(count):
        num_legal, largest = 0, -np.inf
        for action in range(num_actions):
            if masks[i, action]:
                legal[num_legal] = action
                num_legal += 1
                largest = max(largest, logits[i, action])
        total = 0.0
        for k in range(num_legal):
            probs[k] = math.exp(logits[i, legal[k]] - largest)
            total += probs[k]
        log_total = largest + math.log(total)
        entropy = 0.0
        for k in range(num_legal):
            probs[k] /= total
            entropy -= probs[k] * (logits[i, legal[k]] - log_total)
        taken, advantage = actions[i], advantages[i]
        if not (0 <= taken < num_actions and masks[i, taken]):
            raise ValueError("a decision's action is not legal")
        log_ratio = logits[i, taken] - log_total - old_log_probs[i]
        ratio = math.exp(log_ratio)
        gain = ratio * advantage
        clipped_gain = min(max(ratio, 1 - clip_range), 1 + clip_range) * advantage
        # The derivative of the policy's loss with respect to log_ratio.
        slope = 0.0 if clipped_gain < gain else -gain
        for k in range(num_legal):
            log_prob = logits[i, legal[k]] - log_total
            difference = entropy_coef * (log_prob + entropy) - slope
            logit_gradients[i, legal[k]] = probs[k] * difference / count
        logit_gradients[i, taken] += slope / count
        error = values[i, 0] - returns[i]
        value_gradients[i, 0] = 2 * value_coef * error / count
        policy_loss -= min(gain, clipped_gain)
        value_loss += error * error
        total_entropy += entropy
        divergence += ratio - 1 - log_ratio
        num_clipped += abs(ratio - 1) > clip_range
    sums = (policy_loss, value_loss, total_entropy, divergence, num_clipped)
    for k in range(5):
        means[k] = sums[k] / count

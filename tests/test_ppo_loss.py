"""The loss of PPO, compiled and by PyTorch."""

from typing import Any

import numpy as np
import pytest
import torch

from busenv.train.config import PPOConfig
from busenv.train.policies import masked_log_probs, sample
from busenv.train.ppo_loss import Decisions, ppo_loss, torch_loss

LOSSES = pytest.mark.parametrize("loss_of", [ppo_loss, torch_loss])
SETTINGS = PPOConfig(clip_range=0.2, value_coef=0.5, entropy_coef=0.1)
NO_ROWS = torch.zeros(4, 0, dtype=torch.uint8)  # losses read no observations


@LOSSES
def test_the_surrogate_loss_is_clipped_on_the_side_that_gains(loss_of: Any) -> None:
    ratios, advantages = torch.tensor([2.0, 0.5, 2.0, 0.5]), torch.tensor([1.0, 1.0, -1.0, -1.0])
    logits = torch.zeros(4, 3, requires_grad=True)
    masks = torch.tensor([[True, False, True]]).expand(4, 3)
    taken, old = torch.zeros(4, dtype=torch.int64), torch.tensor(0.5).log() - ratios.log()
    decisions = Decisions(NO_ROWS, masks, taken, old, advantages, torch.zeros(4))
    settings = PPOConfig(clip_range=0.2, value_coef=0.0, entropy_coef=0.0)
    loss, means = loss_of(logits, torch.zeros(4, 1), decisions, settings)
    policy_loss, _, entropy, divergence, clip_fraction = means.tolist()
    assert clip_fraction == 1
    wider = settings.changed({"clip_range": 0.6})
    assert loss_of(logits, torch.zeros(4, 1), decisions, wider)[1][4] == 0.5
    assert float(loss.detach()) == pytest.approx(-(1.2 + 0.5 - 2.0 - 0.8) / 4)
    assert policy_loss == pytest.approx(float(loss.detach()))
    assert entropy == pytest.approx(np.log(2))
    loss.backward()
    assert logits.grad is not None
    assert logits.grad[:, 1].tolist() == [0] * 4  # an illegal action
    assert (logits.grad[:, 0] != 0).tolist() == [False, True, True, False]
    assert divergence == pytest.approx(float((ratios - 1 - ratios.log()).mean()))


def test_the_compiled_loss_and_its_gradients_are_those_of_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(200, 40, generator=generator)
    values = torch.randn(200, 2, generator=generator)  # the loss uses the first
    masks = torch.rand(200, 40, generator=generator) < torch.linspace(0, 1, 200)[:, None]
    masks[:, 7] = True  # the only legal action in the first rows
    log_probs = masked_log_probs(2 * logits, masks)
    actions = sample(log_probs, generator)
    old = log_probs.gather(1, actions[:, None])[:, 0]
    others = torch.randn(2, 200, generator=generator)
    decisions = Decisions(NO_ROWS, masks, actions, old, *others)
    results = []
    for loss_of in (ppo_loss, torch_loss):
        inputs = [logits.clone().requires_grad_(), values.clone().requires_grad_()]
        loss, means = loss_of(*inputs, decisions, SETTINGS)
        results.append((loss.detach(), means, *torch.autograd.grad(3 * loss, inputs)))
    assert 0.2 < results[0][1][4] < 0.8  # some ratios are clipped
    for compiled, wanted in zip(*results, strict=True):
        torch.testing.assert_close(compiled, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("action", [1, 2, -1])
def test_an_illegal_action_is_refused(action: int) -> None:
    masks, ones = torch.tensor([[True, False]]), torch.ones(1)
    decisions = Decisions(NO_ROWS[:1], masks, torch.tensor([action]), ones, ones, ones)
    with pytest.raises(ValueError, match="action is not legal"):
        ppo_loss(torch.zeros(1, 2), torch.zeros(1, 1), decisions, SETTINGS)

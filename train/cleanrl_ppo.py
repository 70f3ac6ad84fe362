"""PPO with action masks for one player of Bus, in one file: python train/cleanrl_ppo.py"""

import time
from collections import deque

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import busenv  # registers the environments

total = 200_000  # decisions of the learner
num_envs, num_steps = 64, 64  # a rollout: 4,096 decisions
num_epochs, minibatch = 4, 1024
gamma, gae_lambda = 1.0, 0.95  # episodes are finite
clip, entropy_weight, value_weight, max_norm, rate = 0.2, 0.01, 0.5, 0.5, 5e-4

torch.manual_seed(1)
envs = gymnasium.make_vec(
    "busenv/Bus-v0",
    num_envs=num_envs,
    opponents="random",
    reward="shaped",  # the return equals that of "win": 1 or -1/3
    observation_dtype="float32",
    autoreset_mode="SameStep",  # no step returns the observation of a finished game
)
size, num_actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)


def layer(inputs: int, outputs: int, scale: float = 2**0.5) -> nn.Linear:
    linear = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(linear.weight, scale)
    nn.init.zeros_(linear.bias)
    return linear


body = nn.Sequential(layer(size, 256), nn.ReLU(), layer(256, 256), nn.ReLU())
actor, critic = layer(256, num_actions, 0.01), layer(256, 1, 1.0)
weights = [*body.parameters(), *actor.parameters(), *critic.parameters()]
optimizer = torch.optim.Adam(weights, lr=rate, eps=1e-5)


def policy_and_value(x: torch.Tensor, mask: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
    features = body(x)
    logits = actor(features).masked_fill(~mask, -1e8)  # never samples an illegal action
    return Categorical(logits=logits), critic(features).squeeze(-1)


# The rollout buffer: (num_steps, num_envs) of each.
observations = torch.zeros(num_steps, num_envs, size)
masks = torch.zeros(num_steps, num_envs, num_actions, dtype=torch.bool)
actions = torch.zeros(num_steps, num_envs, dtype=torch.long)
logprobs, values, rewards, dones = (torch.zeros(num_steps, num_envs) for _ in range(4))

returns, wins = np.zeros(num_envs), deque(maxlen=500)
start, decisions = time.time(), 0
array, info = envs.reset(seed=1)
observation, mask = torch.from_numpy(array), torch.from_numpy(info["action_mask"]).bool()

while decisions < total:
    for step in range(num_steps):
        with torch.no_grad():
            policy, values[step] = policy_and_value(observation, mask)
        action = policy.sample()
        observations[step], masks[step], actions[step] = observation, mask, action
        logprobs[step] = policy.log_prob(action)
        array, reward, done, _, info = envs.step(action.numpy())
        observation = torch.from_numpy(array)
        mask = torch.from_numpy(info["action_mask"]).bool()
        rewards[step], dones[step] = torch.from_numpy(reward), torch.from_numpy(done)
        returns += reward
        wins.extend(returns[done] > 0)
        returns[done] = 0
    decisions += num_steps * num_envs

    # Generalized advantage estimation, from the last step backwards.
    with torch.no_grad():
        _, next_value = policy_and_value(observation, mask)
    advantages, advantage = torch.zeros_like(rewards), torch.zeros(num_envs)
    for step in reversed(range(num_steps)):
        not_done = 1 - dones[step]
        delta = rewards[step] + gamma * next_value * not_done - values[step]
        advantage = delta + gamma * gae_lambda * not_done * advantage
        advantages[step], next_value = advantage, values[step]
    targets = advantages + values

    buffers = [observations, masks, actions, logprobs, advantages, targets]
    buffers = [buffer.flatten(0, 1) for buffer in buffers]
    for _ in range(num_epochs):
        for indices in torch.randperm(num_steps * num_envs).split(minibatch):
            x, legal, taken, old_logprob, advantage, target = (b[indices] for b in buffers)
            policy, value = policy_and_value(x, legal)
            ratio = (policy.log_prob(taken) - old_logprob).exp()
            advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
            clipped = ratio.clamp(1 - clip, 1 + clip)
            policy_loss = -torch.min(advantage * ratio, advantage * clipped).mean()
            loss = policy_loss - entropy_weight * policy.entropy().mean()
            loss = loss + value_weight * (target - value).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(weights, max_norm)
            optimizer.step()

    speed = decisions / (time.time() - start)
    print(f"{decisions} decisions, {speed:.0f} per second: {np.mean(wins):.0%} of games won")

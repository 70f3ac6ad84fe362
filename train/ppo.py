"""PPO from every seat of the self-play environment, in one file to copy and change.

    python train/ppo.py --decisions 1000000
    python train/ppo.py --device cuda --num-envs 16384 --decisions 1000000000
    busenv rate py:train/ppo.py:make:policy.pt --against planner --games 400

In half of the games the learner plays every seat, in the other half one seat against three copies
of `greedy`. The script writes the weights to `policy.pt` and rates the policy against `greedy`.
"""

import argparse
import time

import gymnasium
import torch
from torch import nn
from torch.distributions import Categorical

import busenv
from busenv.agents import Agent, from_policy
from busenv.train import compute_gae

STEPS, BATCH, REWARD_UNIT = 128, 512, 5.0
GAMMA, GAE_LAMBDA, CLIP, ENTROPY, VALUE = 0.99, 0.95, 0.2, 0.02, 0.5
GREEDY = 2  # in `seat_owners` of the environment


class Network(nn.Module):
    """Observations, (n, size), to logits, (n, num_actions), and values, (n, 1)."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        board = busenv.load_board("city")
        scale = torch.tensor(busenv.ObservationLayout(board).scale.tolist())
        self.register_buffer("scale", scale)  # brings bytes to 0..1
        self.body = nn.Sequential(nn.Linear(len(scale), width), nn.ReLU())
        self.actor, self.critic = (
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs))
            for outputs in (board.num_actions, 1)
        )

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.body(rows.float() * self.scale)
        return self.actor(features), self.critic(features)

    def evaluate(self, rows: torch.Tensor, masks: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        logits, values = self(rows)
        logits = logits.masked_fill(masks == 0, -1e9)  # never samples an illegal action
        return Categorical(logits=logits, validate_args=False), values[:, 0]


def make(path: str) -> Agent:
    """Return the agent of a file of weights, for `py:train/ppo.py:make:PATH`."""
    network = Network()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return from_policy(
        lambda rows, masks: network(torch.from_numpy(rows))[0],
        relative_types=True,  # as in training
        temperature=0.25,
    )


def train(decisions: int, num_envs: int, device: torch.device) -> Network:
    """Train a network from random weights."""
    envs = gymnasium.make_vec(
        "busenv/BusSelfPlay-v0",
        num_envs=num_envs,
        reward="margin",
        relative_types=True,  # counts building types from the clock
        skip_forced=True,  # decisions with one legal action teach nothing
        autoreset_mode="SameStep",  # every step is a decision
        device=device.type,
    )
    envs.unwrapped.batch.seat_owners[: num_envs // 2, 1:] = GREEDY
    network = Network().to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-4, eps=1e-5)
    rows, info = envs.reset(seed=1)
    start, done = time.time(), 0
    while done < decisions:
        rollout = []
        for _ in range(STEPS):
            seat, mask = info["seat"], torch.as_tensor(info["action_mask"])
            row = torch.as_tensor(rows)
            with torch.no_grad():
                policy, value = network.evaluate(row, mask)
            action = policy.sample()
            rows, _, ended, _, info = envs.step(action.numpy() if device.type == "cpu" else action)
            step = seat, info["rewards"] / REWARD_UNIT, ended
            step = row, mask, action, policy.log_prob(action), value, *map(torch.as_tensor, step)
            rollout.append(step)
        row, mask, action, log_prob, value, seat, reward, ended = map(
            torch.stack, zip(*rollout, strict=True)
        )
        with torch.no_grad():
            _, next_value = network.evaluate(*map(torch.as_tensor, (rows, info["action_mask"])))
        advantage, has_advantage = compute_gae(
            values=value,
            rewards=reward,
            seats=seat,
            terminations=ended,
            next_values=next_value,
            next_seats=torch.as_tensor(info["seat"]),
            gamma=GAMMA,
            gae_lambda=GAE_LAMBDA,
        )
        samples = row, mask, action, log_prob, advantage, advantage + value
        samples = [tensor.flatten(0, 1) for tensor in samples]
        indices = has_advantage.flatten().nonzero()[:, 0]
        indices = indices[torch.randperm(len(indices), device=device)]
        for batch in indices.split(BATCH):
            loss, entropy = ppo_loss(network, *(tensor[batch] for tensor in samples))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            optimizer.step()
        done += len(indices)
        speed = done / (time.time() - start)
        print(f"{done} decisions, {speed:.0f} per second, entropy {entropy:.2f}")
    return network


def ppo_loss(
    network: Network, row, mask, action, old_log_prob, advantage, target
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of a minibatch and the entropy of its policy."""
    policy, value = network.evaluate(row, mask)
    ratio = (policy.log_prob(action) - old_log_prob).exp()
    advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
    clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
    policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
    entropy = policy.entropy().mean()
    value_loss = nn.functional.mse_loss(value, target)
    return policy_loss + VALUE * value_loss - ENTROPY * entropy, entropy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--decisions", type=int, default=1_000_000, help="of the learner")
    parser.add_argument("--games", type=int, default=400, help="of the rating")
    args = parser.parse_args()
    torch.manual_seed(1)
    trained = train(args.decisions, args.num_envs, torch.device(args.device))
    torch.save(trained.state_dict(), "policy.pt")
    table = busenv.rate([make("policy.pt")], args.games, against="greedy")
    print(table[["games", "won", "low", "high"]])

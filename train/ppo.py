"""PPO on the public vector environment with a network of your own.

    python train/ppo.py --decisions 1000000
    python train/ppo.py --device cuda --num-envs 16384 --decisions 1000000000

Half of the seats belong to the learner and half to `greedy`, whom the environment plays. The steps
of PPO are functions of `busenv.train.ppo`: copy one here to change it. At the end the policy plays
against three copies of `greedy`.
"""

import argparse
import time

import gymnasium
import torch
from torch import nn

import busenv
from busenv.agents import from_policy
from busenv.agents.match import play_match
from busenv.train.ppo import Games, LineUps, PPOSettings, make_rollout, play_rollout, update

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
parser.add_argument("--num-envs", type=int, default=256)
parser.add_argument("--decisions", type=int, default=1_000_000, help="of the learner")
parser.add_argument("--games", type=int, default=400, help="in the match at the end")
args = parser.parse_args()


class Network(nn.Module):
    """Observations, (n, size), to logits, (n, num_actions), and values, (n, 1)."""

    def __init__(self, num_actions: int, width: int = 256) -> None:
        super().__init__()
        scale = torch.tensor(busenv.ObservationLayout(busenv.load_board("city")).scale.tolist())
        self.register_buffer("scale", scale)  # brings bytes to 0..1
        self.body = nn.Sequential(nn.Linear(len(scale), width), nn.ReLU())
        self.actor, self.critic = (
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs))
            for outputs in (num_actions, 1)
        )

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.body(rows.float() * self.scale)
        return self.actor(features), self.critic(features)


torch.manual_seed(1)
device = torch.device(args.device)
settings = PPOSettings(steps=128, batch_size=512, epochs=1)
envs = gymnasium.make_vec(
    "busenv/BusSelfPlay-v0",
    num_envs=args.num_envs,
    reward="margin",
    relative_types=True,  # counts building types from the clock
    skip_forced=True,  # decisions with one legal action teach nothing
    copy=False,  # the rollout copies what it stores
    device=args.device,
)
weights = torch.tensor([0.0, 1.0], device=device)  # of `random` and `greedy` among opponents
games = Games(envs, LineUps(weights, opponent_share=0.5))
rollout = make_rollout(settings.steps, args.num_envs, *games.sizes, device)
network = Network(games.sizes[1]).to(device)
optimizer = torch.optim.Adam(network.parameters(), lr=5e-4, eps=1e-5)
generator = torch.Generator(device).manual_seed(1)

games.reset(1, generator)
start, decisions = time.time(), 0
while decisions < args.decisions:
    play_rollout(games, network, {}, rollout, settings=settings, generator=generator)
    statistics = update(network, optimizer, rollout, settings=settings, generator=generator)
    decisions += int(statistics["decisions"])
    speed = decisions / (time.time() - start)
    print(f"{decisions} decisions, {speed:.0f} per second, entropy {statistics['entropy']:.2f}")

network.cpu()
learner = from_policy(
    lambda rows, masks: network(torch.from_numpy(rows))[0],
    relative_types=True,
    temperature=0.25,
    name="ppo",
)
others = [busenv.make_agent("greedy", seed) for seed in range(3)]
score = play_match([learner, *others], args.games)[0]
low, high = score.interval()
print(
    f"{score.wins / score.games:.1%} [{low:.1%}, {high:.1%}] of {args.games} games won; par is 25%"
)

"""A policy of PyTorch as an agent.

    busenv rate py:agents/torch_policy.py:make:policy.pt --against random --games 100

`policy.pt` holds the `state_dict` of a `Policy`, as `torch.save` writes it. Without a file the
weights are random. Replace `Policy` by the network that you trained.
"""

import torch
from torch import nn

import busenv
from busenv.agents import Agent, from_policy


class Policy(nn.Module):
    """Observations, uint8 (n, size), to logits, (n, num_actions)."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        board = busenv.load_board("city")
        scale = torch.tensor(busenv.ObservationLayout(board).scale.tolist())
        self.register_buffer("scale", scale)  # brings bytes to 0..1
        self.layers = nn.Sequential(
            nn.Linear(len(scale), width), nn.ReLU(), nn.Linear(width, board.num_actions)
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layers(rows.float() * self.scale)


def make(path: str = "") -> Agent:
    """Return the agent. path: the file of the weights; random weights without one."""
    torch.manual_seed(0)
    policy = Policy()
    if path:
        policy.load_state_dict(torch.load(path, weights_only=True))
    # relative_types=True if the policy was trained with that setting of the environment
    return from_policy(lambda rows, masks: policy(torch.from_numpy(rows)), relative_types=False)


if __name__ == "__main__":
    game = busenv.Game(seed=1)
    print(game.describe(make().act(game)))

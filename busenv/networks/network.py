"""The base class of networks."""

from __future__ import annotations

import torch
from torch import nn

from busenv.networks.inputs import Inputs


class Network(nn.Module):
    """Maps rows (uint8, (N, size)) to logits (float32, (N, num_actions)) and values (float32,
    (N, num_values)).

    eval_weights: float64, (4, COUNT), weights of the evaluation features, which are saved with the
    network's own so that the features of a trained network never change; (0, COUNT) without them.
    num_values: 1, the return that the seat to decide expects; or SEAT_VALUES, the final result of
    every seat, the viewer's first and then clockwise: five logits of winning, then five final
    points in units of `busenv.networks.logits.POINTS`.
    """

    eval_weights: torch.Tensor
    relative_types: bool
    num_values: int
    plays_any_board = False

    @property
    def inputs(self) -> Inputs:
        """What a row holds."""
        return Inputs(self.relative_types, self.eval_weights.cpu().numpy(), self.plays_any_board)

"""The default network in compiled code, for one position at a time: what acts on a CPU uses it.

A library's layers take a matrix of rows; a search has one row, nine tenths of which are zeros. Here
a layer adds up the weights of those inputs that are not zero, eight inputs at a time along all
outputs, so that it is a loop over contiguous floats; of the logits those of legal actions are
worked out only. Weights are the network's own, read where they are (`Mlp` keeps them input by
input), so that what is learned counts at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np

from busenv import Board
from busenv.agents.neural.logits import action_probabilities, check_playable
from busenv.agents.neural.outlook import NO_PLAN, see_games, write_outlook
from busenv.agents.planner.evaluation import Evaluation, make_evaluation
from busenv.core.bits import GOLDEN, ZERO, load_word, mix
from busenv.core.jit import fast_kernel, kernel
from busenv.core.observe import observe
from busenv.core.observe import size as observation_size
from busenv.core.rules.legal import legal_ids
from busenv.core.scene import paint
from busenv.core.state import GAME, OVER

if TYPE_CHECKING:  # weights play without torch
    from torch import nn

    from busenv.agents.neural.networks import Mlp

Forward = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
Policy = Callable[[np.ndarray, float], np.ndarray]

AT_ONCE = 8  # inputs added up in one loop, and bytes looked at in one step


class Weights(NamedTuple):
    """A network's weights, float32. Matrices are (inputs, outputs), heads' last ones (outputs,
    inputs): their rows are wanted one by one."""

    scale: np.ndarray
    plan: np.ndarray  # float64, (4, COUNT), of the outlook behind an observation; empty without
    shared: np.ndarray
    shared_bias: np.ndarray
    blocks: np.ndarray  # (count, width, width)
    blocks_bias: np.ndarray
    policy: np.ndarray
    policy_bias: np.ndarray
    logits: np.ndarray
    logits_bias: np.ndarray
    value: np.ndarray
    value_bias: np.ndarray
    outputs: np.ndarray
    outputs_bias: np.ndarray


class Work(NamedTuple):
    """Arrays that the kernels work in, one set a thread.

    row: uint8, (size,), what the network is told; scene, painted: see `busenv.core.scene`.
    evaluation: of the outlook. bits: uint64, (words,). places: int64 and value: float32, inputs
    that are not zero. trunk, hidden: float32, of the layers. actions: int64 and logits: float32,
    (num_actions,), of the legal actions, side by side. values: float32, (outputs,).
    """

    row: np.ndarray
    scene: np.ndarray
    painted: np.ndarray
    evaluation: Evaluation
    bits: np.ndarray
    places: np.ndarray
    value: np.ndarray
    trunk: np.ndarray
    hidden: np.ndarray
    actions: np.ndarray
    logits: np.ndarray
    values: np.ndarray


def read_weights(network: Mlp) -> Weights:
    """The weights of a network on the CPU, without copying."""

    def array(tensor: Any) -> np.ndarray:
        return tensor.detach().numpy()

    def by_input(layer: Any) -> tuple[np.ndarray, np.ndarray]:
        matrix = array(layer.weight).T
        if not matrix.flags.c_contiguous:
            raise ValueError("the network's weights do not stand input by input")
        return matrix, array(layer.bias)

    (policy, _, logits), (value, _, outputs) = network.policy, network.value
    return Weights(
        array(network.scale),
        array(network.plan),
        *by_input(network.shared),
        array(network.blocks.weight),
        array(network.blocks.bias),
        *by_input(policy),
        array(logits.weight),
        array(logits.bias),
        *by_input(value),
        array(outputs.weight),
        array(outputs.bias),
    )


def make_work(weights: Weights) -> Work:
    """Arrays to work in with a network of such weights."""
    size, width = weights.shared.shape
    actions, hidden = weights.logits.shape
    widest = max(size, width) + 1  # a list is written one beyond its end
    return Work(
        np.zeros(size, np.uint8),
        np.zeros(size, np.uint8),  # longer than a picture
        np.zeros(1, GAME),
        make_evaluation(),
        np.zeros((actions + 63) // 64, np.uint64),
        np.zeros(widest, np.int64),
        np.zeros(widest, np.float32),
        np.zeros(width, np.float32),
        np.zeros(max(width, hidden, len(weights.value_bias)), np.float32),
        np.zeros(actions, np.int64),
        np.zeros(actions, np.float32),
        np.zeros(len(weights.outputs_bias), np.float32),
    )


@fast_kernel
def _list_bytes(row, scale, index, value):
    """Where the bytes of a row are not zero, and what they count; how many there are."""
    count, size = 0, row.shape[0]
    for first in range(0, size - AT_ONCE + 1, AT_ONCE):
        if load_word(row, first) != ZERO:
            for k in range(first, first + AT_ONCE):  # without a branch
                index[count] = k
                count += row[k] != 0
    for k in range(size - size % AT_ONCE, size):
        index[count] = k
        count += row[k] != 0
    for k in range(count):
        value[k] = np.float32(row[index[k]]) * scale[index[k]]
    return count


@fast_kernel
def _list_positive(inputs, index, value):
    """Where inputs are above zero (what ReLU leaves), and what they are; how many there are."""
    count = 0
    for k in range(inputs.shape[0]):
        index[count] = k
        value[count] = inputs[k]
        count += inputs[k] > np.float32(0.0)
    return count


@fast_kernel
def _add_rows(count, index, value, matrix, out):
    """Add `value` times the rows of a matrix that `index` names."""
    width = matrix.shape[1]
    whole = count - count % AT_ONCE
    for k in range(0, whole, AT_ONCE):
        i0, i1, i2, i3 = index[k], index[k + 1], index[k + 2], index[k + 3]
        i4, i5, i6, i7 = index[k + 4], index[k + 5], index[k + 6], index[k + 7]
        v0, v1, v2, v3 = value[k], value[k + 1], value[k + 2], value[k + 3]
        v4, v5, v6, v7 = value[k + 4], value[k + 5], value[k + 6], value[k + 7]
        for j in range(width):
            low = v0 * matrix[i0, j] + v1 * matrix[i1, j] + v2 * matrix[i2, j] + v3 * matrix[i3, j]
            high = v4 * matrix[i4, j] + v5 * matrix[i5, j] + v6 * matrix[i6, j] + v7 * matrix[i7, j]
            out[j] += low + high
    for k in range(whole, count):
        i0, v0 = index[k], value[k]
        for j in range(width):
            out[j] += v0 * matrix[i0, j]


@fast_kernel
def _relu(out, width):
    for j in range(width):
        out[j] = max(out[j], np.float32(0.0))


@fast_kernel
def _hidden(count, work, matrix, bias):
    """A head's hidden layer, from the inputs listed in `work`, into `work.hidden`."""
    hidden = work.hidden
    for j in range(bias.shape[0]):
        hidden[j] = bias[j]
    _add_rows(count, work.places, work.value, matrix, hidden)
    _relu(hidden, bias.shape[0])


@fast_kernel
def _output(hidden, matrix, bias, k):
    """Output `k` of a head's last layer."""
    total = bias[k]
    for j in range(matrix.shape[1]):
        total += hidden[j] * matrix[k, j]
    return total


@fast_kernel
def forward(weights, work, legal):
    """Logits of the first `legal` of `work.actions`, and values, of the observation in `work`."""
    index, value, trunk = work.places, work.value, work.trunk
    count = _list_bytes(work.row, weights.scale, index, value)
    for j in range(trunk.shape[0]):
        trunk[j] = weights.shared_bias[j]
    _add_rows(count, index, value, weights.shared, trunk)
    _relu(trunk, trunk.shape[0])
    count = _list_positive(trunk, index, value)
    for block in range(weights.blocks.shape[0]):
        for j in range(trunk.shape[0]):
            trunk[j] += weights.blocks_bias[block, j]
        _add_rows(count, index, value, weights.blocks[block], trunk)
        _relu(trunk, trunk.shape[0])
        count = _list_positive(trunk, index, value)
    _hidden(count, work, weights.value, weights.value_bias)
    for k in range(work.values.shape[0]):
        work.values[k] = _output(work.hidden, weights.outputs, weights.outputs_bias, k)
    _hidden(count, work, weights.policy, weights.policy_bias)
    for k in range(legal):
        action = work.actions[k]
        work.logits[k] = _output(work.hidden, weights.logits, weights.logits_bias, action)


@fast_kernel
def evaluate(g, b, weights, work):
    """What the seat to decide sees in a game that is not over: see `forward`. How many actions are
    legal; they are in `work.actions`."""
    work.painted[0].players = 0
    paint(g, b, work.scene, work.row, work.painted[0])
    observe(g, b, work.scene, g.seat, work.row, False)
    if weights.plan.shape[0] > 0:
        write_outlook(g, b, weights.plan, work.evaluation, work.row[observation_size(b) :])
    legal = legal_ids(g, b, work.bits, work.actions)
    forward(weights, work, legal)
    return legal


@fast_kernel
def soften(logits, count, temperature):
    """Turn the first `count` logits into probabilities; whether they were finite numbers."""
    best, total = logits[0], np.float32(0.0)
    for k in range(count):
        best = max(best, logits[k])
    for k in range(count):
        if not np.isfinite(logits[k]):
            return False
        logits[k] = np.exp((logits[k] - best) / temperature)
        total += logits[k]
    for k in range(count):
        logits[k] /= total
    return True


@fast_kernel
def _policies(games, board, weights, work, temperature, out):
    """The probabilities of each game's actions into `out`, zeros at first.

    Whether a game was over, or its logits not finite: (index of the first such game, which).
    """
    for i in range(games.shape[0]):
        if games[i].phase == OVER:
            return i, True
        legal = evaluate(games[i], board[0], weights, work)
        if not soften(work.logits, legal, temperature):
            return i, False
        for k in range(legal):
            out[i, work.actions[k]] = work.logits[k]
    return -1, True


@kernel
def draw_actions(probabilities, noise, actions):
    """An action for each row of probabilities (float32), drawn by them; never one of 0.

    noise: uint64, (1,), state of the random stream. actions: int64, (N,).
    """
    for i in range(probabilities.shape[0]):
        total, last = 0.0, 0
        for action in range(probabilities.shape[1]):
            total += probabilities[i, action]
        noise[0] += GOLDEN
        rest = total * (np.float64(mix(noise[0]) >> np.uint64(11)) / 2.0**53)
        for action in range(probabilities.shape[1]):
            if probabilities[i, action] > 0.0:
                last = action
                rest -= probabilities[i, action]
                if rest < 0.0:
                    break
        actions[i] = last


@fast_kernel
def evaluate_games(games, board, weights, work):
    """`evaluate` games one by one, for the sake of what it costs."""
    for i in range(games.shape[0]):
        evaluate(games[i], board[0], weights, work)


@fast_kernel
def _forward_rows(rows, masks, weights, work, logits, values):
    """`forward` for many observations; logits of what is not legal are left as they are."""
    row, actions = work.row, work.actions
    for i in range(rows.shape[0]):
        for k in range(row.shape[0]):
            row[k] = rows[i, k]
        legal = 0
        for action in range(masks.shape[1]):
            actions[legal] = action
            legal += masks[i, action]
        forward(weights, work, legal)
        for k in range(legal):
            logits[i, actions[k]] = work.logits[k]
        for k in range(values.shape[1]):
            values[i, k] = work.values[k]


def make_forward(network: nn.Module | Weights) -> Forward:
    """A network as a function of observations (uint8, (N, size)) and masks (bool, (N,
    num_actions)): logits (float32, (N, num_actions)), 0 or anything where not legal, and values
    (float32, (N, outputs)).

    An Mlp on the CPU, or the weights of one, is called in compiled code, anything else by torch.
    The function has arrays of its own: one thread at a time may call it.
    """
    if not isinstance(network, Weights) and not is_compiled(network):
        return lambda rows, masks: _by_torch(network, rows)
    weights = network if isinstance(network, Weights) else read_weights(network)
    work = make_work(weights)

    def compiled(rows: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits = np.zeros(masks.shape, np.float32)
        values = np.zeros((len(rows), len(work.values)), np.float32)
        _forward_rows(rows, masks, weights, work, logits, values)
        return logits, values

    return compiled


def make_policy(network: nn.Module | Weights, board: Board) -> Policy:
    """A network as a function of games (GAME, (N,)) and a temperature above 0: the probability of
    each action, float32 (N, num_actions).

    Errors and threads are those of `action_probabilities` and `make_forward`.
    """
    if not isinstance(network, Weights) and not is_compiled(network):
        from busenv.agents.neural.networks import Mlp

        plan = network.plan.cpu().numpy() if isinstance(network, Mlp) else NO_PLAN

        def by_torch(games: np.ndarray, temperature: float) -> np.ndarray:
            rows, masks = see_games(games, board, plan)
            return action_probabilities(_by_torch(network, rows)[0], masks, temperature)

        return by_torch
    weights = network if isinstance(network, Weights) else read_weights(network)
    work = make_work(weights)

    def compiled(games: np.ndarray, temperature: float) -> np.ndarray:
        found = np.zeros((len(games), board.num_actions), np.float32)
        wrong, over = _policies(games, board.array, weights, work, np.float32(temperature), found)
        if wrong >= 0:
            check_playable(finite=over, legal=not over)
        return found

    return compiled


def is_compiled(network: nn.Module) -> TypeGuard[Mlp]:
    """Whether a network is called in compiled code: an Mlp on the CPU."""
    from busenv.agents.neural.networks import Mlp

    return isinstance(network, Mlp) and network.shared.weight.device.type == "cpu"


def _by_torch(network: nn.Module, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import torch

    device = next(network.parameters()).device
    with torch.no_grad():
        logits, values = network(torch.from_numpy(rows).to(device))
    return logits.cpu().numpy(), values.cpu().numpy()

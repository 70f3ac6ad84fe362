"""N games on a GPU, stepped by the kernels of `busenv.Batch` and equal to it bit for bit.

Requires the extra `cuda`: PyTorch holds the memory, and numba-cuda compiles the kernels.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode

from busenv.batch.batch import Batch, check_mask
from busenv.batch.opponents import COMPILED, Opponents
from busenv.batch.saved_games import STATE_ARRAYS, as_bytes, check_state
from busenv.core import cuda_kernels
from busenv.core.batch_kernels import NO_VIEWER
from busenv.core.cuda_kernels import BLOCK, GameWorkspaces
from busenv.core.state import BOARD, GAME
from busenv.validation import Illegal, check_seed

Launch = Callable[..., None]


class CudaBatch:
    """N games on the current GPU. The tensors below are overwritten by every step.

    device: the torch device. player_counts, boards, rules, board, autoreset_mode: as in
        `busenv.Batch`.
    observations, masks, seats, acting_seats, rewards, acting_rewards, terminations,
        illegal_actions, board_index, final_board_index, seat_owners: torch tensors with the shapes,
        dtypes and values of the arrays of `busenv.Batch`.
    games, final_games: uint8, (N, GAME.itemsize), the records as bytes;
        `games.cpu().numpy().view(GAME)` reads them.
    final_observations, final_masks: uint8, (N, size), and bool, (N, num_actions), of the last game
        that ended in each row, from the view of the seat that decided last. Only with SAME_STEP;
        otherwise they have one row, which is unused.

    num_games: N. The other arguments are keyword-only and those of `busenv.Batch`, with these
    differences:
    reward: a name only.
    opponents: None, "random", "greedy", or a sequence of the two names.
    illegal: "replace" (default) or "lose".

    With the autoreset mode DISABLED, a step starts a new game where one has ended and has not been
    reset, as with NEXT_STEP, because kernels cannot raise.

    The first batch of a process compiles the kernels, which takes a minute or more.

    Raises ValueError for an invalid setting or without a GPU, and ModuleNotFoundError without
    numba-cuda.
    """

    def __init__(
        self,
        num_games: int,
        *,
        reward: str = "win",
        opponents: Opponents = None,
        illegal: Illegal = "replace",
        **settings: Any,
    ) -> None:
        _check_supported(reward, opponents, illegal)
        self.device = find_device()
        on_cpu = Batch(num_games, reward=reward, opponents=opponents, illegal=illegal, **settings)
        arrays = on_cpu._arrays
        self.boards, self.rules, self.board = on_cpu.boards, on_cpu.rules, on_cpu.board
        self.autoreset_mode, self.player_counts = on_cpu.autoreset_mode, on_cpu.player_counts
        self.has_started = False  # whether the games have begun
        actions = self.board.num_actions
        ends = num_games if self.autoreset_mode == AutoresetMode.SAME_STEP else 1
        spaces = GameWorkspaces(
            bits=np.zeros((num_games, (actions + 63) // 64), np.uint64),
            ids=np.zeros((num_games, actions), np.int64),
            ahead=np.zeros(num_games, GAME),
            final_observations=np.zeros((ends, arrays.observations.shape[1]), np.uint8),
            final_masks=np.zeros((ends, actions), np.bool_),
        )
        self._empty_state, self._opponent_kinds = on_cpu.state(), arrays.kinds
        self._tensors: dict[str, torch.Tensor] = {}
        selected = self._on_device("selected", np.zeros(num_games, np.bool_))
        self.boards.build(np.arange(len(self.boards)))  # kernels on a GPU cannot wait for them
        arguments = self._all_on_device(arrays), self._all_on_device(spaces)
        for name, tensor in self._tensors.items():
            setattr(self, name if name in PUBLIC else f"_{name}", tensor)
        self._step_arguments = arguments
        self._reset_arguments = *arguments, selected
        self._launcher = Launcher(
            num_games, self._step_arguments, (*self._reset_arguments, *_seeding(None))
        )

    observations: torch.Tensor
    masks: torch.Tensor
    seats: torch.Tensor
    seat_owners: torch.Tensor
    acting_seats: torch.Tensor
    rewards: torch.Tensor
    acting_rewards: torch.Tensor
    terminations: torch.Tensor
    illegal_actions: torch.Tensor
    board_index: torch.Tensor
    games: torch.Tensor
    final_games: torch.Tensor
    final_board_index: torch.Tensor
    final_observations: torch.Tensor
    final_masks: torch.Tensor
    _actions: torch.Tensor
    _selected: torch.Tensor

    def _on_device(self, name: str, array: np.ndarray) -> Any:
        """Copy an array to the device; keep it as a tensor and return it for kernels."""
        tensor = bytes_on_device(array, self.device)
        if array.dtype.names:  # records
            self._tensors[name] = tensor.view(*array.shape, array.dtype.itemsize)
        else:
            dtype = torch.from_numpy(np.empty(0, array.dtype)).dtype
            self._tensors[name] = tensor.view(dtype).view(array.shape)
        return kernel_array(tensor, array.dtype, array.shape)

    def _all_on_device(self, values: Any) -> Any:
        """Copy the arrays of a named tuple to the device and return it for kernels."""
        return type(values)(
            *(
                self._on_device(name, value) if isinstance(value, np.ndarray) else value
                for name, value in zip(values._fields, values, strict=True)
            )
        )

    def reset(self, seed: int | None = None, mask: np.ndarray | torch.Tensor | None = None) -> None:
        """Start new games, as `busenv.Batch.reset` does.

        mask: bool, (N,), an array or a tensor.

        Raises ValueError for an invalid seed or mask, and for the first reset without a seed or
        with a mask.
        """
        if seed is not None:
            seed = check_seed(seed)
        shape = self._selected.shape
        if mask is not None and not isinstance(mask, torch.Tensor):
            mask = torch.from_numpy(check_mask(mask, tuple(shape)))
        if mask is not None and (mask.dtype != torch.bool or mask.shape != shape):
            raise ValueError(
                f"the mask of games to reset is {mask!r}; allowed: bools, shape {tuple(shape)}"
            )
        if (seed is None or mask is not None) and not self.has_started:
            raise ValueError("call reset(seed) for all games first")
        if mask is None:
            self._selected.fill_(True)
        else:
            self._selected.copy_(mask)
        self._launcher.reset(*self._reset_arguments, *_seeding(seed))
        self.has_started = True

    def step(self, actions: torch.Tensor) -> None:
        """Take one action in every game, on the current stream of torch.

        actions: whole numbers, (N,), on the device. Nothing waits for the device, so a CUDA graph
            can capture the step; run one step before.

        Raises ValueError for another shape, dtype or device, and before the first reset.
        """
        if (
            not isinstance(actions, torch.Tensor)
            or actions.shape != self._actions.shape
            or actions.dtype not in WHOLE_NUMBERS
            or actions.device != self.device
        ):
            raise ValueError(
                f"actions are {actions!r}; allowed: a tensor of whole numbers of shape "
                f"{tuple(self._actions.shape)} on {self.device}"
            )
        if not self.has_started:
            raise ValueError("call reset(seed) before step(actions)")
        self._actions.copy_(actions)
        self._launcher.step(*self._step_arguments)

    def state(self) -> dict[str, np.ndarray]:
        """Return copies of the arrays from which `restore` continues the games.

        They are those of `busenv.Batch.state`; this waits for the device.
        """
        state = {}
        for name, array in self._empty_state.items():
            tensor = self._tensors[name].contiguous().view(torch.uint8)
            state[name] = tensor.cpu().numpy().reshape(-1).view(array.dtype).reshape(array.shape)
        return state

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Continue from a state of this class or of `busenv.Batch`, as `busenv.Batch.restore`."""
        check_state(state, self._empty_state, self.boards, self._opponent_kinds)
        for name in STATE_ARRAYS:
            content = torch.from_numpy(as_bytes(np.ascontiguousarray(state[name])))
            self._tensors[name].view(torch.uint8).view(-1).copy_(content)
        self._tensors["cached"].zero_()  # the caches show other games
        self._tensors["viewers"].fill_(NO_VIEWER)
        self.terminations.copy_(self._tensors["needs_reset"])
        for tensor in (self.illegal_actions, self.rewards, self.acting_rewards, self._selected):
            tensor.zero_()
        over = self.terminations
        self.final_games[over] = self.games[over]
        self.final_board_index[over] = self.board_index[over]
        self._launcher.reset(*self._reset_arguments, *_seeding(None))
        self.has_started = True


PUBLIC = {name for name in CudaBatch.__annotations__ if not name.startswith("_")}
WHOLE_NUMBERS = {torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8}


def _check_supported(reward: Any, opponents: Opponents, illegal: str) -> None:
    """Raise ValueError for settings of `busenv.Batch` that no kernel on a device can follow."""
    if illegal == "raise":
        raise ValueError(
            'illegal is "raise", but kernels on a GPU cannot raise: use "replace" or "lose"'
        )
    if callable(reward):
        raise ValueError(
            "reward is a function, which cannot run on a GPU: use the name of a reward, or compute "
            'yours from the tensors that each step returns, or use device="cpu"'
        )
    several = isinstance(opponents, Sequence) and not isinstance(opponents, str)
    for opponent in opponents if several else [opponents or "random"]:  # type: ignore[union-attr]
        if not (isinstance(opponent, str) and opponent in COMPILED):
            raise ValueError(
                f"the opponent {opponent!r} cannot run on a GPU: use None, "
                f'{", ".join(map(repr, COMPILED))} or a sequence of these names, or device="cpu"'
            )


def _seeding(seed: int | None) -> tuple[bool, np.uint64]:
    """Return the arguments `reseeds` and `seed` of the kernel for a reset."""
    return seed is not None, np.uint64(seed or 0)


def find_device() -> torch.device:
    """Return the current GPU; ValueError without one, ModuleNotFoundError without numba-cuda."""
    if importlib.util.find_spec("numba_cuda") is None:
        raise ModuleNotFoundError(
            'device="cuda" requires numba-cuda: install the extra cuda', name="numba_cuda"
        )
    if not torch.cuda.is_available():
        raise ValueError('device is "cuda", but PyTorch finds no CUDA GPU')
    return torch.device("cuda", torch.cuda.current_device())


def bytes_on_device(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """Copy the bytes of an array to a device: uint8, (array.nbytes,)."""
    return torch.from_numpy(np.array(array, order="C").reshape(-1).view(np.uint8)).to(device)


def kernel_array(tensor: torch.Tensor, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
    """View a tensor of bytes as an array for kernels, without a copy or a synchronisation.

    A tensor on the CPU gives the types for which the kernels of the CPU are compiled.
    """
    if tensor.device.type == "cpu":
        array = tensor.numpy().view(dtype).reshape(shape)
        array.flags.writeable = dtype != BOARD
        return array
    from numba import cuda

    return cuda.as_cuda_array(tensor, sync=False).view(dtype).reshape(*shape)


class Launcher:
    """The CUDA kernels of a batch, compiled for the types of their arguments.

    `step` and `reset` launch one thread per game on the current stream of torch.
    """

    def __init__(
        self, num_games: int, step_arguments: tuple[Any, ...], reset_arguments: tuple[Any, ...]
    ) -> None:
        step, reset = cuda_kernels.device_kernels()
        self._step = cuda_kernels.compiled(step, step_arguments)
        self._reset = cuda_kernels.compiled(reset, reset_arguments)
        self._blocks = (num_games + BLOCK - 1) // BLOCK
        self._launches: dict[int, tuple[Launch, Launch]] = {}  # by the address of a stream

    def step(self, *arguments: Any) -> None:
        """Launch the kernel that steps all games."""
        self._on_current_stream()[0](*arguments)

    def reset(self, *arguments: Any) -> None:
        """Launch the kernel that resets games."""
        self._on_current_stream()[1](*arguments)

    def _on_current_stream(self) -> tuple[Launch, Launch]:
        address = torch.cuda.current_stream().cuda_stream
        if address not in self._launches:
            from numba import cuda

            stream = cuda.external_stream(address)
            with warnings.catch_warnings():  # numba warns of fewer than 128 blocks
                warnings.simplefilter("ignore")
                self._launches[address] = (
                    self._step[self._blocks, BLOCK, stream],
                    self._reset[self._blocks, BLOCK, stream],
                )
        return self._launches[address]

"""Trained networks on disk: NAME.safetensors holds the weights, NAME.json, the card, all else.

The card says what the network is (`network`, `width`), what it was made for (`observation_version`,
`board`, `num_actions`, `rules`, `players`), how it was trained (`training`), how well it plays
(`ratings`), at which `temperature` it is meant to play (1 where the card does not say), and which
weights it belongs to (`sha256`). A board that does not come with busenv is in the card as a whole
(`board_file`), so that a model can be loaded wherever it is.

Both may come from anyone. Nothing in them is executed, and no memory is taken that the weights on
disk do not take: they are compared with what the card's network needs before it is built.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from busenv import Board
from busenv.agents.networks.logits import HIGHEST_TEMPERATURE
from busenv.agents.networks.mlp import (
    WIDEST,
    build_network,
    check_tensors,
    weights_of,
)
from busenv.agents.networks.policy_agent import PolicyAgent
from busenv.agents.schema import LONGEST_SENTENCE, Schema, parse, read_limited
from busenv.agents.search.az_agent import AzAgent
from busenv.error_text import did_you_mean, truncate
from busenv.errors import BoardError
from busenv.game.board import board_names, load_board, make_board
from busenv.io import write_whole
from busenv.observation import VERSION

WEIGHTS, CARD = ".safetensors", ".json"
SHIPPED = Path(__file__).parent / "models"
HEADER = 100_000  # bytes at most of a weights file that are not weights
PAUSE = 0.1  # seconds in which the second of two files is written, on a slow disk


Number = Annotated[int, Field(ge=0, le=10**9)]


class BoardName(Schema):
    """Which board: its name, and the fingerprint that tells it from all others."""

    name: str = ""
    fingerprint: Annotated[str, Field(pattern="^[0-9a-z]{1,64}$")]


class ModelCard(Schema):
    """What loading needs of a card; it may tell more."""

    model_config = ConfigDict(extra="allow")

    network: Annotated[str, Field(max_length=40)]
    width: Annotated[int, Field(ge=1, le=WIDEST)]
    sha256: str
    observation_version: Number
    board: BoardName
    board_file: dict[str, Any] | None = None
    num_actions: Number
    temperature: Annotated[float, Field(ge=0, le=HIGHEST_TEMPERATURE)] = 1.0


def shipped_models() -> list[str]:
    """Names of the models that come with the package."""
    return sorted(path.stem for path in SHIPPED.glob(f"*{WEIGHTS}"))


def save_model(network: nn.Module, board: Board, path: str | Path, card: dict[str, Any]) -> None:
    """Write PATH (.safetensors) and its card beside it, each whole or not at all, through no link.

    Who reads between the two reads once more.
    card: `network` and `width` as for `build_network`, and whatever else is to be told.
    """
    path = Path(path)
    if path.suffix != WEIGHTS:
        raise ValueError(f"model path is {str(path)!r}; allowed: one that ends in {WEIGHTS}")
    data = save({name: value.cpu().contiguous() for name, value in network.state_dict().items()})
    about: dict[str, Any] = {
        "sha256": hashlib.sha256(data).hexdigest(),
        "observation_version": VERSION,
        "board": {"name": board.name, "fingerprint": board.fingerprint},
        "num_actions": board.num_actions,
    }
    if _shipped_board(board.fingerprint) is None:
        about["board_file"] = _board_content(board)
    write_whole(path, data, follow_links=False)
    write_whole(
        path.with_suffix(CARD), json.dumps({**card, **about}, indent=1) + "\n", follow_links=False
    )


def load_model(path: str | Path, board: Board) -> tuple[nn.Module, dict[str, Any]]:
    """The network of a model, for a board, and its card.

    FileNotFoundError when either file is missing; ValueError when they are damaged, do not belong
    together, hold weights that are not finite, or were made for other observations or for another
    board.
    """
    network, card, _ = _load(Path(path), board)
    return network, card.model_dump(exclude_unset=True)


def model_path(name: str) -> Path:
    """Where a model is: a path that ends in .safetensors, or the name of a shipped model.

    FileNotFoundError when there is none; it names the shipped models.
    """
    path = Path(name)
    if path.suffix == WEIGHTS:
        if not path.is_file():
            raise FileNotFoundError(f"no model {name!r}: there is no file {path}")
        return path
    if name not in shipped_models():
        raise FileNotFoundError(
            f"no model {name!r}{did_you_mean(name, shipped_models())}; allowed: a path that ends "
            f"in {WEIGHTS}, or one of the package's: {', '.join(shipped_models()) or 'none'}"
        )
    return SHIPPED / f"{name}{WEIGHTS}"


def load_policy_agent(
    name: str, seed: int = 0, temperature: float | None = None, spec: str = ""
) -> PolicyAgent:
    """An agent from a model's path (ends in .safetensors) or the name of a shipped model.

    It plays on the board that the model was trained on. temperature: by default what the card says.
    Errors are those of `load_model` and `model_path`.
    """
    network, card, board = _load(model_path(name))
    if temperature is None:
        temperature = card.temperature
    return PolicyAgent(network, board, spec or f"net:{name}", seed, temperature)


def load_search_agent(
    name: str,
    simulations: int | None = None,
    seconds: float | None = None,
    threads: int = 1,
    seed: int = 0,
    spec: str = "",
) -> AzAgent:
    """An agent that searches guided by a model, as `load_policy_agent` finds it; see `AzAgent`."""
    network, _, board = _load(model_path(name))
    return AzAgent(network, board, simulations, seconds, threads, seed, spec or f"az:{name}")


class _MismatchError(ValueError):
    """Weights and card do not belong together."""


def _load(
    path: Path, board: Board | None = None, again: bool = True
) -> tuple[nn.Module, ModelCard, Board]:
    """A model with its card and board: the one that is wanted, or by default its own.

    again: read once more after a moment, where the files may just be written anew.
    """
    card = _read_card(path.with_suffix(CARD))
    if board is not None and card.board.fingerprint != board.fingerprint:
        raise ValueError(f"{path} was trained on another board than {board!r}")
    own = board or _board_of(path, card)
    try:
        return _load_network(path, card, own), card, own
    except _MismatchError:
        if not again:
            raise
    time.sleep(PAUSE)
    return _load(path, board, again=False)


def _load_network(path: Path, card: ModelCard, board: Board) -> nn.Module:
    """The network that a card tells of, from the weights at the path."""
    version = card.observation_version
    if version != VERSION:
        raise ValueError(
            f"{path} sees observations of version {version}; this busenv has {VERSION}"
        )
    if card.num_actions != board.num_actions:
        raise ValueError(f"{path} has {card.num_actions} actions; its board {board.num_actions}")
    wanted = weights_of(card.network, board, card.width)
    data = read_limited(path, sum(w.numel() * w.itemsize for w in wanted.values()) + HEADER)
    if hashlib.sha256(data).hexdigest() != card.sha256:
        raise _MismatchError(
            f"{path} is not the file that its card {path.with_suffix(CARD)} tells of"
        )
    try:
        weights = load(data)
        check_tensors(weights, wanted)
    except (SafetensorError, ValueError) as error:
        words = truncate(
            f"{path} holds no {card.network} of width {card.width}: {error}", LONGEST_SENTENCE
        )
        raise ValueError(words) from error
    network = build_network(card.network, board, card.width)
    network.load_state_dict(weights)
    return network.eval().requires_grad_(False)


def _read_card(path: Path) -> ModelCard:
    """A card with all that loading needs."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}, the card of the model beside it")
    data = read_limited(path)
    try:
        return parse(ModelCard, data)
    except ValueError as error:
        raise ValueError(f"{path} is no card of a model: {error}") from error


def _board_of(path: Path, card: ModelCard) -> Board:
    """The board that a model was trained on: one that comes with busenv, or the card's own."""
    fingerprint = card.board.fingerprint
    board = _shipped_board(fingerprint)
    if board is None and card.board_file is not None:
        try:
            board = make_board(card.board_file)
        except BoardError as error:
            raise ValueError(f"{path.with_suffix(CARD)}: its board is none: {error}") from error
    if board is None or board.fingerprint != fingerprint:
        raise ValueError(
            f"{path} was trained on a board (fingerprint {fingerprint}) that neither "
            "comes with busenv nor is in its card"
        )
    return board


def _shipped_board(fingerprint: str) -> Board | None:
    """The board of a fingerprint, if it comes with busenv."""
    boards = (load_board(name) for name in board_names())
    return next((board for board in boards if board.fingerprint == fingerprint), None)


def _board_content(board: Board) -> dict[str, Any]:
    """A board as its file has it."""
    return {
        "name": board.name,
        "intersections": [
            {"id": i, **asdict(entry)} for i, entry in enumerate(board.intersections)
        ],
        "streets": board.streets,
        "sites": [{"id": i, **asdict(entry)} for i, entry in enumerate(board.sites)],
    }

"""Trained models on disk: NAME.safetensors holds the weights, NAME.json is the model card.

The card holds the architecture (`network`, `width`, `relative_types`), what the model was made for
(`observation_version`, `board`, `num_actions`, `rules`, `players`), the training procedure
(`training`), the playing strength (`ratings`), the `temperature` to play at (default 1) and the
checksum of the weights (`sha256`). `board_file` holds a board that busenv does not include.

Both files may be untrusted. Loading executes nothing, and compares the weights with what the
card's network needs before it allocates memory for them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import ConfigDict, Field, model_validator
from safetensors import SafetensorError
from safetensors.torch import load, save
from typing_extensions import Self

from busenv import Board
from busenv.core.features import VERSION
from busenv.error_text import did_you_mean, truncate
from busenv.errors import BoardError
from busenv.game.board import make_board
from busenv.game.board_specs import (
    GeneratedBoards,
    board_at,
    board_names,
    generated_boards,
    is_playable,
    load_board,
)
from busenv.io import read_bounded, write_whole
from busenv.networks.factory import MAX_WIDTH, build_network, weights_of
from busenv.networks.logits import HIGHEST_TEMPERATURE
from busenv.networks.network import Network
from busenv.schema import LONGEST_SENTENCE, Schema, parse

WEIGHTS_SUFFIX, CARD_SUFFIX = ".safetensors", ".json"
ANY_BOARD = "board"  # the kind of network that plays any board
BUNDLED = Path(__file__).parent / "models"
HEADER = 100_000  # bytes at most of a weights file besides the weights

Number = Annotated[int, Field(ge=0, le=10**9)]


class BoardReference(Schema):
    """Name and fingerprint of a board, or of a set of generated boards.

    generator: version of the set's generator, None for one board.
    """

    name: str = ""
    fingerprint: Annotated[str, Field(pattern="^[0-9a-z]{1,64}$")]
    generator: Number | None = None


class ModelCard(Schema):
    """The keys of a card that loading needs; a card has other keys, too."""

    model_config = ConfigDict(extra="allow")

    network: Annotated[str, Field(max_length=40)]
    width: Annotated[int, Field(ge=1, le=MAX_WIDTH)]
    relative_types: bool = False
    sha256: str
    observation_version: Number
    board: BoardReference | None = None
    board_file: dict[str, Any] | None = None
    temperature: Annotated[float, Field(ge=0, le=HIGHEST_TEMPERATURE)] = 1.0

    @model_validator(mode="after")
    def _check_board(self) -> Self:
        if (self.board is None) != (self.network == ANY_BOARD):
            raise ValueError(f"a card has a board unless its network is {ANY_BOARD!r}")
        return self


def bundled_models() -> list[str]:
    """Return the names of the models in the package."""
    return sorted(path.stem for path in BUNDLED.glob(f"*{WEIGHTS_SUFFIX}"))


def save_model(
    network: Network, boards: Board | GeneratedBoards, path: str | Path, card: dict[str, Any]
) -> None:
    """Write PATH (.safetensors) and its card, each atomically.

    boards: the board, or the set of boards, that the network was trained on; ignored for one
    that plays any board. card: `network` and `width` as for `build_network`, and any further keys.

    Raises ValueError, with nothing written, for a bad path or a card that loading would refuse.
    """
    path = Path(path)
    if path.suffix != WEIGHTS_SUFFIX:
        raise ValueError(f"model path is {str(path)!r}; allowed: one that ends in {WEIGHTS_SUFFIX}")
    weights = {name: value.cpu().contiguous() for name, value in network.state_dict().items()}
    data = save(weights)
    generated: dict[str, Any] = {
        "relative_types": network.relative_types,
        "sha256": hashlib.sha256(data).hexdigest(),
        "observation_version": VERSION,
    }
    if not network.plays_any_board:
        generated["board"] = {"name": boards.name, "fingerprint": boards.fingerprint}
        generated["num_actions"] = board_at(boards, 0).num_actions
        if isinstance(boards, GeneratedBoards):
            generated["board"]["generator"] = boards.generator
        elif _bundled_board(boards.fingerprint) is None:
            generated["board_file"] = _board_content(boards)
    text = json.dumps({**card, **generated}, indent=1) + "\n"
    parse(ModelCard, text)
    write_whole(path, data)
    write_whole(path.with_suffix(CARD_SUFFIX), text)


def load_model(
    path: str | Path, boards: Board | GeneratedBoards | None = None
) -> tuple[Network, ModelCard, Board | GeneratedBoards | None]:
    """Return a model's network and card, and the board or set of boards it was trained on.

    The last is None for a network that plays any board.

    boards: the board, or the set of boards, to play on; None for those of the model. A model that
    was trained on a set of boards plays all boards of their size.

    Raises FileNotFoundError when a file is missing, and ValueError when the files are damaged, do
    not match each other, hold weights that are not finite, or were made for another observation
    version or board.
    """
    path = Path(path)
    card = _read_card(path.with_suffix(CARD_SUFFIX))
    own = None if card.board is None else _boards_of(path, card, card.board)
    one_for_many = isinstance(own, Board) and isinstance(boards, GeneratedBoards)
    if boards is not None and (one_for_many or not is_playable(board_at(boards, 0), own)):
        raise ValueError(f"{path} was trained on another board than {boards!r}")
    return _load_network(path, card, None if own is None else board_at(own, 0)), card, own


def model_path(name: str) -> Path:
    """Return the weights file of a model: a path that ends in .safetensors, or a bundled model.

    Raises FileNotFoundError, which lists the bundled models, when there is none.
    """
    path = Path(name)
    if path.suffix == WEIGHTS_SUFFIX:
        if not path.is_file():
            raise FileNotFoundError(f"no model {name!r}: there is no file {path}")
        return path
    if name not in bundled_models():
        hint = did_you_mean(name, bundled_models()) or (
            f"; allowed: a path that ends in {WEIGHTS_SUFFIX}, or one of the bundled models: "
            f"{', '.join(bundled_models())}"
        )
        raise FileNotFoundError(f"no model {name!r}{hint}")
    return BUNDLED / f"{name}{WEIGHTS_SUFFIX}"


def _load_network(path: Path, card: ModelCard, board: Board | None) -> Network:
    version = card.observation_version
    if version != VERSION:
        raise ValueError(
            f"{path} needs observations of version {version}; this busenv has {VERSION}"
        )
    try:
        expected = weights_of(card.network, board, card.width)
    except ValueError as error:
        raise ValueError(f"{path.with_suffix(CARD_SUFFIX)}: {error}") from error
    limit = sum(w.numel() * w.itemsize for w in expected.values()) + HEADER
    data = read_bounded(path, limit=limit)
    if hashlib.sha256(data).hexdigest() != card.sha256:
        raise ValueError(
            f"{path} does not match the checksum in its card {path.with_suffix(CARD_SUFFIX)}"
        )
    try:
        weights = load(data)
        check_tensors(weights, expected)
        network = build_network(
            card.network, board, card.width, None, relative_types=card.relative_types
        )
        network.load_state_dict(weights)
    except (SafetensorError, ValueError) as error:
        message = truncate(
            f"{path} is not a network of kind {card.network!r} and width {card.width}: {error}",
            LONGEST_SENTENCE,
        )
        raise ValueError(message) from error
    return network.eval().requires_grad_(False)


def check_tensors(tensors: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    """Raise ValueError unless tensors are finite, with the expected names, shapes and dtypes."""
    if differing := tensors.keys() ^ expected.keys():
        name = min(differing)
        raise ValueError(f"{name} is {'missing' if name in expected else 'not part of it'}")
    for name, tensor in tensors.items():
        actual, needed = (f"{t.dtype}, {tuple(t.shape)}" for t in (tensor, expected[name]))
        if actual != needed:
            raise ValueError(f"{name} is {actual}; it needs {needed}")
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{name} holds a number that is not finite")


def _read_card(path: Path) -> ModelCard:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}, the model's card")
    data = read_bounded(path)
    try:
        return parse(ModelCard, data)
    except ValueError as error:
        raise ValueError(f"{path} is not a model card: {error}") from error


def _boards_of(path: Path, card: ModelCard, entry: BoardReference) -> Board | GeneratedBoards:
    """Return what a model was trained on: a board of busenv, the card's own board, or a set."""
    boards: Board | GeneratedBoards | None
    try:
        if entry.generator is not None:
            boards = generated_boards(entry.name)
        else:
            boards = _bundled_board(entry.fingerprint)
            if boards is None and card.board_file is not None:
                boards = make_board(card.board_file)
    except BoardError as error:
        raise ValueError(
            f"{path.with_suffix(CARD_SUFFIX)}: its board is not valid: {error}"
        ) from error
    if boards is None or boards.fingerprint != entry.fingerprint:
        raise ValueError(
            f"{path} was trained on a board (fingerprint {entry.fingerprint}, generator version "
            f"{entry.generator}) that is neither in busenv nor in its card"
        )
    return boards


def _bundled_board(fingerprint: str) -> Board | None:
    """Return busenv's board with a fingerprint, if there is one."""
    boards = (load_board(name) for name in board_names())
    return next((board for board in boards if board.fingerprint == fingerprint), None)


def _board_content(board: Board) -> dict[str, Any]:
    return {
        "name": board.name,
        "intersections": [
            {"id": i, **asdict(entry)} for i, entry in enumerate(board.intersections)
        ],
        "streets": board.streets,
        "sites": [{"id": i, **asdict(entry)} for i, entry in enumerate(board.sites)],
    }

"""Typed messages that the server receives: websocket requests, new games, uploaded records."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from busenv.schema import Schema, first_error

MAX_NAME = 40  # characters of a player's name
MAX_REQUEST = 16_384  # characters of a websocket request
MAX_BODY = 512 * 1024  # bytes of a POST body; the record of a long game takes 4 kB
MAX_DELAY = 5.0  # seconds between automatic moves


class RequestError(Exception):
    """A request that the server refuses.

    code: the machine-readable reason. message: the reason as displayed text. status: the
    HTTP status.
    """

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


def _check_printable(text: str) -> str:
    text = text.strip()
    if not text.isprintable():
        raise PydanticCustomError("name", "allowed: printable characters")
    return text


Number = Annotated[int, Field(ge=0, le=2**31)]
SeatIndex = Annotated[int, Field(ge=0, le=4)]
Name = Annotated[str, Field(max_length=MAX_NAME), AfterValidator(_check_printable)]
AgentSpec = Annotated[str, Field(max_length=4000)]
# Pages send text, since their numbers are exact up to 2**53 only.
Seed = Annotated[int, Field(ge=0, lt=2**64, strict=False)]


class DecideRequest(Schema):
    type: Literal["decide"]
    node: Number
    action: Number


class NodeRequest(Schema):
    type: Literal["undo", "redo", "view"]
    node: Number


class JumpRequest(Schema):
    type: Literal["jump"]
    node: Number
    target: Number


class SwitchRequest(Schema):
    """Pause, or the chart of the current variation."""

    type: Literal["pause", "chart"]
    enabled: bool


class DelayRequest(Schema):
    type: Literal["delay"]
    seconds: Annotated[float, Field(ge=0, le=MAX_DELAY)]


class AnalysisRequest(Schema):
    """node: to analyse; None ends the analysis."""

    type: Literal["analysis"]
    node: Number | None = None


class RenameRequest(Schema):
    type: Literal["rename"]
    seat: SeatIndex
    name: Name


class RematchRequest(Schema):
    type: Literal["rematch"]


AnyRequest = (
    DecideRequest | NodeRequest | JumpRequest | SwitchRequest | DelayRequest
    | AnalysisRequest | RenameRequest | RematchRequest
)  # fmt: skip
REQUESTS: TypeAdapter[AnyRequest] = TypeAdapter(Annotated[AnyRequest, Field(discriminator="type")])


class Seat(Schema):
    """The player at a seat. spec: the agent, for seats of kind "agent" only."""

    kind: Literal["me", "friend", "agent"]
    name: Name = ""
    spec: AgentSpec | None = None


class NewGame(Schema):
    """The settings of a new game; `record` continues a recorded game."""

    seats: Annotated[list[Seat], Field(min_length=3, max_length=5)]
    rules: str | None = None
    board: str | None = None
    first_player: SeatIndex | None = None
    seed: Seed | None = None
    record: str | None = None

    @model_validator(mode="after")
    def _check_first_player(self) -> NewGame:
        players = len(self.seats)
        if self.first_player is not None and self.first_player >= players:
            raise ValueError(f"first player is {self.first_player}; allowed: 0 to {players - 1}")
        return self


def parse_request(text: str) -> AnyRequest:
    """Parse a websocket request. RequestError: too_large, bad_message."""
    if len(text) > MAX_REQUEST:
        raise RequestError("too_large", f"A request has at most {MAX_REQUEST:,} characters.")
    try:
        return REQUESTS.validate_json(text)
    except ValidationError as error:
        raise RequestError("bad_message", first_error(error)) from None

"""All that may come from a page: requests and new games, as typed values.

A request that is not by the schema is refused by name before anybody looks into it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from busenv.agents.schema import Schema, first_error

LONGEST_NAME = 40
LONGEST_MESSAGE = 16_384  # bytes of a request
LARGEST_BODY = 512 * 1024  # bytes of what is posted; the record of a long game takes 4 kB
MOST_NODES = 64  # of a tree, to be looked at in one request
SLOWEST = 5.0  # seconds between moves that go by themselves


class Refusal(Exception):  # noqa: N818 - it is no error of ours
    """What is not done, by the name of why, and in words for people. status: in HTTP."""

    def __init__(self, name: str, words: str, status: int = 400) -> None:
        super().__init__(words)
        self.name, self.words, self.status = name, words, status


def _printable(text: str) -> str:
    text = text.strip()
    if not text.isprintable():
        raise ValueError("allowed: letters, digits, signs and spaces")
    return text


Number = Annotated[int, Field(ge=0, le=2**31)]
Name = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(_printable)]
Spec = Annotated[str, Field(min_length=1, max_length=200)]


class Request(Schema):
    """What every request may have: a number of the page's own, which an answer repeats."""

    request: Number | None = None


class Decide(Request):
    type: Literal["decide"]
    node: Number
    action: Number


class Undo(Request):
    type: Literal["undo"]
    node: Number


class Redo(Request):
    type: Literal["redo"]
    node: Number


class Go(Request):
    type: Literal["go"]
    node: Number
    to: Number


class Pause(Request):
    type: Literal["pause"]
    on: bool


class Pace(Request):
    type: Literal["pace"]
    seconds: Annotated[float, Field(ge=0, le=SLOWEST)]


class Hint(Request):
    type: Literal["hint"]
    node: Number
    agent: Spec | None = None


class Analysis(Request):
    type: Literal["analysis"]
    on: bool
    agent: Spec | None = None


class Graph(Request):
    type: Literal["graph"]
    on: bool
    agent: Spec | None = None


class View(Request):
    type: Literal["view"]
    nodes: Annotated[list[Number], Field(min_length=1, max_length=MOST_NODES)]


class Rename(Request):
    type: Literal["name"]
    seat: Annotated[int, Field(ge=0, le=4)]
    name: Name


class Again(Request):
    type: Literal["again"]


AnyRequest = (
    Decide | Undo | Redo | Go | Pause | Pace | Hint | Analysis | Graph | View | Rename | Again
)
REQUESTS: TypeAdapter[AnyRequest] = TypeAdapter(Annotated[AnyRequest, Field(discriminator="type")])


class Chair(Schema):
    """Who is to sit at a seat. spec: of an agent, and of nobody else."""

    kind: Literal["me", "friend", "agent"]
    name: Name = ""
    spec: Spec | None = None


class NewGame(Schema):
    """A game to be begun; seed as a text where it is too large for a page's numbers."""

    seats: Annotated[list[Chair], Field(min_length=3, max_length=5)]
    rules: Annotated[str, Field(max_length=100)] | None = None
    board: Annotated[str, Field(max_length=100)] | None = None
    first_player: Annotated[int, Field(ge=0, le=4)] | None = None
    seed: (
        Annotated[int, Field(ge=0, le=2**63 - 1)]
        | Annotated[str, Field(pattern="^[0-9]{1,18}$")]
        | None
    ) = None
    record: Annotated[str, Field(max_length=LARGEST_BODY)] | None = None
    ply: Annotated[int, Field(ge=0, le=10_000)] | None = None


class Preview(Schema):
    """A record to be looked at before a game is begun from it."""

    record: Annotated[str, Field(max_length=LARGEST_BODY)]
    ply: Annotated[int, Field(ge=0, le=10_000)] | None = None


NEW_GAME: TypeAdapter[NewGame] = TypeAdapter(NewGame)
PREVIEW: TypeAdapter[Preview] = TypeAdapter(Preview)


def read_request(text: str) -> AnyRequest:
    """A request from what a page has sent. Refusals: too_large, bad_json, bad_message."""
    if len(text) > LONGEST_MESSAGE:
        raise Refusal("too_large", f"a message has {LONGEST_MESSAGE:,} letters at most")
    return read(REQUESTS, text, "bad_message")


def read(kind: TypeAdapter[Any], text: str | bytes, name: str) -> Any:
    """A typed value from JSON text; Refusal "bad_json", or by a name where it is another."""
    try:
        return kind.validate_json(text)
    except ValidationError as error:
        words = first_error(error)
        is_json = error.errors(include_url=False)[0]["type"] != "json_invalid"
    raise Refusal(name if is_json else "bad_json", words)

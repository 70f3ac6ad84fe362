"""Model Context Protocol (MCP) server: tools with which a language model plays Bus.

One game at a time. The client decides for the seats called "me"; agents play the others. Clients
are not trusted: agents are those of a list, and no tool reads or writes files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

import busenv
from busenv import EDITIONS, Game
from busenv.agents import Agent, make_agent
from busenv.envs.text.prompts import LISTED, Prompts, get_prompts
from busenv.error_text import truncate
from busenv.game.board_generator import PREFIX
from busenv.game.board_specs import board_names
from busenv.render.game_drawing import game_svg
from busenv.schema import first_error

AGENTS = ("random", "greedy", "planner", "uct:300", "net:city-5")  # that any client may name
ME = "me"
GAME_OVER = "the game is over; start_game starts another one"


class McpGame:
    """The game of a server and its tools; errors are ValueErrors in one line for the client."""

    def __init__(self, agents: Sequence[str]) -> None:
        self._allowed = (*agents,)
        self._agents: dict[str, Agent] = {}
        self._seats: list[str] = []
        self._game: Game | None = None

    def start_game(
        self, seats: list[str], seed: int = 0, edition: str = "capstone-2024", board: str = "city"
    ) -> str:
        """Start a game, replacing the current one, and return the rules and the position.

        seats: 3 to 5 entries, one per seat: "me" for a seat that you play (at least one), or the
        name of an agent. board: "city" or "generated:SIZE:SEED", SIZE one of small, medium, city
        and large.
        """
        for seat in seats:
            _check("seat", seat, [ME, *self._allowed])
        if ME not in seats:
            raise ValueError(f"no seat is {ME!r}; name at least one")
        _check("edition", edition, [*EDITIONS])
        if not board.startswith(f"{PREFIX}:"):
            _check("board", board, [*board_names(), f"{PREFIX}:SIZE:SEED"])
        game = Game(len(seats), edition, board, seed=seed)
        for agent in (self._get_agent(seat) for seat in seats if seat != ME):
            agent.act(game)  # raises the error of an agent that does not play on the board
            agent.reset(seed)
        self._play_agents(game, seats)
        self._game, self._seats = game, seats
        rules = self._prompts.instructions.removesuffix(LISTED)
        return f"{rules}Call take_action to play one of your legal actions.\n\n{self.position()}"

    def position(self) -> str:
        """Describe the position, and your legal actions with their ids."""
        return self._prompts.question(self._running)

    def drawing(self) -> str:
        """Draw the position as SVG text."""
        return game_svg(self._running)

    def legal_actions(self) -> str:
        """List your legal actions as "ID: words"."""
        game = self._running
        if game.is_over:
            raise ValueError(GAME_OVER)
        return "\n".join(f"{i}: {game.describe(i)}" for i in game.legal_actions())

    def take_action(self, action: str | int) -> str:
        """Take a legal action, given by its id or its words.

        Agents then play until your next decision; their actions are listed first.
        """
        game = self._running.clone()  # an agent that fails leaves the position unchanged
        if game.is_over:
            raise ValueError(GAME_OVER)
        game.step(self._prompts.read(game, str(action)))
        lines = self._play_agents(game, self._seats)
        self._game = game
        return "\n".join([*lines, self.position()])

    def undo(self) -> str:
        """Undo your last action and what agents have played since."""
        game = self._running
        before = game.clone()
        while before.history:
            before.undo()
            if self._seats[before.current_player] == ME:
                self._game = before
                return self.position()
        raise ValueError("nothing to undo: you have taken no action")

    def hint(self, agent: str = "planner") -> str:
        """Return the action that an agent would take in your place."""
        game = self._running
        action = self._get_agent(agent).act(game)
        return f"{agent} takes {action}: {game.describe(action)}"

    def _play_agents(self, game: Game, seats: Sequence[str]) -> list[str]:
        """Let the agents play up to the client's next decision; returns their actions in words."""
        lines = []
        while not game.is_over and (spec := seats[seat := game.current_player]) != ME:
            action = self._get_agent(spec).act(game)
            lines.append(f"seat {seat} ({spec}): {game.describe(action)}")
            game.step(action)
        return lines

    def _get_agent(self, spec: str) -> Agent:
        _check("agent", spec, self._allowed)
        if spec not in self._agents:
            self._agents[spec] = make_agent(spec)
        return self._agents[spec]

    @property
    def _running(self) -> Game:
        if self._game is None:
            raise ValueError("no game; start_game starts one")
        return self._game

    @property
    def _prompts(self) -> Prompts:
        game = self._running
        return get_prompts(game.board, game.rules, game.num_players)


class _Server(MCPServer):
    """An MCP server with one call at a time and errors in one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__("busenv", **settings)
        self._lock = asyncio.Lock()

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        async with self._lock:
            try:
                return await super().call_tool(name, arguments, context)
            except ToolError as error:
                cause = error.__cause__
                if isinstance(cause, ValidationError):
                    raise ToolError(first_error(cause)) from None
                raise ToolError(str(cause or error)) from None


def build_server(agents: Sequence[str] = AGENTS) -> MCPServer:
    """Return a server whose clients may name the given agents."""
    game = McpGame(agents)
    instructions = (
        f"Play the board game Bus. start_game starts a game, with agents of: {', '.join(agents)}. "
        "take_action takes one of the legal actions."
    )
    server = _Server(instructions=instructions, version=busenv.__version__, log_level="ERROR")
    for tool in (
        game.start_game,
        game.position,
        game.drawing,
        game.legal_actions,
        game.take_action,
        game.undo,
        game.hint,
    ):
        server.add_tool(tool, structured_output=False)
    return server


def serve(agents: Sequence[str]) -> None:
    """Serve a client on standard input and output until it closes one of them."""
    try:
        build_server(agents).run()
    except Exception as error:
        causes = getattr(error, "exceptions", (error,))  # an ExceptionGroup of Python 3.11
        if not all(isinstance(cause, BrokenPipeError) for cause in causes):
            raise


def _check(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {truncate(ascii(value))}; allowed: {', '.join(allowed)}")

"""Analyses of a position and of a whole game, streamed to pages."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine
from typing import Any

from busenv.play import agent_pool, serializers
from busenv.play.agent_pool import AgentPool, AgentTaskError, PositionAnalysis
from busenv.play.catalogue import CHART_SIMULATIONS, agent_name, analyst_of
from busenv.play.game_tree import GameTree
from busenv.render.chart import draw_chart, first_plies
from busenv.render.phrases import merge_moves

UPDATE_SECONDS = 0.4  # between two messages about a position
MAX_SECONDS = 60.0  # of the analysis of one position
CHART_BATCH = 6  # positions of a chart between two messages
MIN_LOSS, MAX_MISTAKES = 0.03, 5  # loss of the chance to win that is listed; of each seat

Publish = Callable[[dict[str, Any]], None]  # sends a message to a page
Run = Callable[[Publish], Coroutine[Any, Any, None]]


async def run_analysis(run: Run, publish: Publish) -> None:
    """Run an analysis; publish why it cannot go on, if an agent fails."""
    try:
        await run(publish)
    except AgentTaskError as error:
        publish({"type": "error", "code": "no_estimate", "message": str(error)})


async def analyse_position(
    tree: GameTree, node: int, analysts: AgentPool, publish: Publish
) -> None:
    """Publish the chances to win and best moves at a node, refined for a minute."""
    game, forced = tree.game(node), tree.nodes[node].legal_count == 1
    analyst = analyst_of(tree.board)
    # A search with a time limit does not search a forced decision.
    spec = f"{analyst}:1000" if forced else f"{analyst}:{UPDATE_SECONDS}s"
    end, running = 0.0, True
    while running:
        start = time.monotonic()
        (value,) = await analysts.call(agent_pool.estimate, spec, str(id(tree)), [game])
        now = time.monotonic()
        end = end or now + MAX_SECONDS  # without the time to build the agent
        is_final = forced or now - start < UPDATE_SECONDS  # the best move is proven
        running = not is_final and now < end
        message = {
            "type": "analysis",
            "agent": agent_name(f"{analyst}:1000"),
            "simulations": value.simulations,
            "running": running,
        }
        publish(message | serializers.estimate(tree, node, value))


async def analyse_game(
    tree: GameTree,
    variation: list[int],
    known: dict[int, PositionAnalysis],
    lock: asyncio.Lock,
    analysts: AgentPool,
    publish: Publish,
) -> None:
    """Publish the chances to win along a variation, and the decisions that lost most of them.

    known: the estimates by node, which this function completes. lock: of `known`, so that pages
    share the work.
    """
    for node in variation:
        if tree.nodes[node].turn < 0:
            ranking = tree.position_game(node).ranking()
            known[node] = PositionAnalysis([float(rank == 0) for rank in ranking], [])
    publish(_chart_message(tree, variation, known))
    while any(node not in known for node in variation):
        async with lock:
            nodes = [node for node in variation if node not in known][:CHART_BATCH]
            games = [tree.game(node) for node in nodes]
            context = f"{id(tree)} chart"
            estimates = await analysts.call(agent_pool.estimate, _chart_agent(tree), context, games)
            known |= dict(zip(nodes, estimates, strict=True))
        publish(_chart_message(tree, variation, known))


def _chart_agent(tree: GameTree) -> str:
    return f"{analyst_of(tree.board)}:{CHART_SIMULATIONS}"


def _chart_message(
    tree: GameTree, variation: list[int], known: dict[int, PositionAnalysis]
) -> dict[str, Any]:
    chances = [known[node].chances if node in known else None for node in variation]
    return {
        "type": "chart",
        "agent": _chart_agent(tree),
        "variation": variation,
        "chances": [values and [round(value, 4) for value in values] for values in chances],
        "mistakes": _mistakes(tree, variation, known),
        "svg": _draw_chances(tree, variation, chances),
    }


def _draw_chances(
    tree: GameTree, variation: list[int], chances: list[list[float] | None]
) -> str | None:
    """The chances as a chart in SVG; None while nothing is known."""
    if not any(chances):
        return None
    players = range(tree.start.players)
    rounds = first_plies(tree.nodes[node].round for node in variation)
    curves = [[values[seat] if values else None for values in chances] for seat in players]
    last = next(values for values in chances[::-1] if values)
    order = sorted(players, key=lambda seat: -last[seat])
    ranking = [order.index(seat) for seat in players]
    return draw_chart(
        "Chance to win over time", curves, 0, 1, rounds=rounds, ranking=ranking, percent=True
    )


def _mistakes(
    tree: GameTree, variation: list[int], known: dict[int, PositionAnalysis]
) -> list[dict[str, Any]]:
    """Return each seat's decisions that cost it the most chance to win, each with a better one."""
    mistakes: list[dict[str, Any]] = []
    for before, after in itertools.pairwise(variation):
        node = tree.nodes[after]
        if node.forced or before not in known or after not in known:
            continue
        chances = [known[one].chances[node.seat] for one in (before, after)]
        best_actions = known[before].best_actions
        if chances[0] - chances[1] < MIN_LOSS or not best_actions:
            continue
        position = tree.position_game(before).position()
        better = merge_moves(tree.board, position, best_actions)[0][0]
        played = serializers.describe(tree, before, node.action)
        if better != played:
            mistakes.append(
                {
                    "node": after,
                    "seat": node.seat,
                    "before": round(chances[0], 4),
                    "after": round(chances[1], 4),
                    "text": played,
                    "better": better,
                }
            )
    mistakes.sort(key=lambda mistake: mistake["after"] - mistake["before"])
    by_seat = [[one for one in mistakes if one["seat"] == k] for k in range(tree.start.players)]
    return [one for ones in by_seat for one in ones[:MAX_MISTAKES]]

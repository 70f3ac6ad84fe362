"""The map as arrays and as a graph, for networks that play on many boards.

Intersections are nodes. Each street is two directed edges: edge 2 * street + d leads away from the
street's end d, as the action id `first_street` + 2 * street + d grows a line. Sites are entries
of a table that names their nodes.

    >>> import busenv
    >>> from busenv.graph import batch_graphs, stack_maps
    >>> batch = busenv.Batch(3, board="generated:small:train:8")
    >>> batch.reset(seed=1)
    >>> maps = stack_maps(batch.boards)
    >>> maps.edge_index.shape, maps.site_intersection.shape   # of 8 boards
    ((8, 2, 56), (8, 21))
    >>> graphs = batch_graphs(maps, batch.board_index, batch.observations)
    >>> graphs.nodes.shape, graphs.edges.shape, graphs.edge_index.shape   # of 3 games
    ((48, 29), (168, 13), (2, 168))

The arrays are those of PyTorch Geometric and of Jraph:

    Data(x=torch.from_numpy(graphs.nodes), edge_index=torch.from_numpy(graphs.edge_index),
         edge_attr=torch.from_numpy(graphs.edges))
    GraphsTuple(graphs.nodes, graphs.edges, graphs.edge_index[1], graphs.edge_index[0],
                graphs.n_node, graphs.n_edge, graphs.globals)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv.core.map_rows import ROUNDABOUT, STATION, ZONE_SITES, offsets_of, split_map, write_maps
from busenv.core.state import FIRST_BUILD
from busenv.game.board import Board
from busenv.game.board_specs import Boards, as_boards
from busenv.observation import ObservationLayout


class Maps(NamedTuple):
    """Static arrays of K boards of equal sizes: V intersections, S streets, B sites, A actions.

    coordinates: float32, (K, V, 2), relative to the middle of the map, in units of the square root
        of the map's area per intersection. y points down.
    node_features: float32, (K, V, 8): coordinates, roundabout, train station, and the number of
        sites in zones 1, 2, 3, 4 and later.
    street_ends: int64, (K, S, 2). edge_index: int64, (K, 2, 2 S), sources and targets.
    edge_features: float32, (K, 2 S, 3): the vector from source to target, and its length.
    site_intersection, site_zone: int64, (K, B). Zones are 1, 2, 3, and 4 for all later ones.
    action_node: int64, (K, A), the intersection that a build, pick-up or set-down action names,
        else -1. action_edge, action_site: int64, (A,), the edge of a line action and the site of a
        build action, else -1.
    layout: the `busenv.ObservationLayout` of the boards.
    """

    coordinates: np.ndarray
    node_features: np.ndarray
    street_ends: np.ndarray
    edge_index: np.ndarray
    edge_features: np.ndarray
    site_intersection: np.ndarray
    site_zone: np.ndarray
    action_node: np.ndarray
    action_edge: np.ndarray
    action_site: np.ndarray
    layout: ObservationLayout


class Graphs(NamedTuple):
    """The positions of N games as one graph with N parts.

    nodes: float32, (N V, 29), `Maps.node_features` and the section `intersections`, scaled.
    edges: float32, (N 2 S, 13), `Maps.edge_features` and the section `streets`, scaled.
    edge_index: int64, (2, N 2 S), sources and targets.
    sites: float32, (N, B, 4), the section `sites`.
    globals: float32, (N, 401), the sections `players` and `table`, scaled.
    n_node, n_edge: int64, (N,), sizes of the parts.
    """

    nodes: np.ndarray
    edges: np.ndarray
    edge_index: np.ndarray
    sites: np.ndarray
    globals: np.ndarray
    n_node: np.ndarray
    n_edge: np.ndarray


def stack_maps(boards: Boards) -> Maps:
    """Return the maps of one board or of a set of boards (`busenv.Batch.boards`)."""
    boards = as_boards(boards)
    records, first = boards.array, boards[0]
    at = offsets_of(records)
    rows = np.empty((len(boards), at.node), np.uint8)
    write_maps(records, rows)
    city_map = split_map(rows, at)
    coordinates = np.stack([_coordinates(board) for board in boards])
    ends, site_node = city_map.ends.astype(np.int64), city_map.site_nodes.astype(np.int64)
    stations = city_map.marks[..., STATION] | city_map.marks[..., STATION + 1]
    features = (
        coordinates,
        city_map.marks[..., [ROUNDABOUT]],
        stations[..., None],
        city_map.marks[..., ZONE_SITES:],
    )
    edge_index = np.stack([ends.reshape(len(boards), -1), ends[..., ::-1].reshape(len(boards), -1)])
    board = np.arange(len(boards))[:, None]
    vectors = coordinates[board, edge_index[1]] - coordinates[board, edge_index[0]]
    lengths = np.hypot(vectors[..., 0], vectors[..., 1])
    action_edge, action_site, action_node = _action_tables(first)
    nodes = np.repeat(action_node[None], len(boards), axis=0)
    nodes[:, action_site >= 0] = site_node[:, action_site[action_site >= 0]]
    return Maps(
        coordinates=coordinates,
        node_features=np.concatenate(features, axis=2, dtype=np.float32),
        street_ends=ends,
        edge_index=edge_index.swapaxes(0, 1),
        edge_features=np.concatenate([vectors, lengths[..., None]], axis=2),
        site_intersection=site_node,
        site_zone=city_map.site_zones.astype(np.int64) + 1,
        action_node=nodes,
        action_edge=action_edge,
        action_site=action_site,
        layout=ObservationLayout(first),
    )


def batch_graphs(maps: Maps, board_index: np.ndarray, observations: np.ndarray) -> Graphs:
    """Return the positions of N games as a graph.

    board_index: int64, (N,), the map of each game. observations: uint8, (N, size).
    """
    layout, games = maps.layout, len(observations)
    scaled = observations * layout.scale
    players_start = layout.sections["players"].start
    street_block = np.repeat(layout.view(scaled, "streets"), 2, axis=1)
    nodes = np.concatenate(
        [maps.node_features[board_index], layout.view(scaled, "intersections")], axis=2
    )
    edges = np.concatenate([maps.edge_features[board_index], street_block], axis=2)
    offsets = np.arange(games)[:, None, None] * nodes.shape[1]
    edge_index = (maps.edge_index[board_index] + offsets).swapaxes(0, 1)
    return Graphs(
        nodes=nodes.reshape(-1, nodes.shape[2]),
        edges=edges.reshape(-1, edges.shape[2]),
        edge_index=edge_index.reshape(2, -1),
        sites=layout.view(scaled, "sites"),
        globals=scaled[:, players_start:],
        n_node=np.full(games, nodes.shape[1]),
        n_edge=np.full(games, edges.shape[1]),
    )


def _coordinates(board: Board) -> np.ndarray:
    """Return a board's coordinates as `Maps.coordinates` has them: float32, (V, 2)."""
    points = np.array([(entry.x, entry.y) for entry in board.intersections])
    low, high = points.min(axis=0), points.max(axis=0)
    sides = high - low  # a straight map has no area
    unit = np.sqrt(np.prod(sides) / len(points)) or sides.max() / len(points) or 1
    return ((points - (low + high) / 2) / unit).astype(np.float32)


def _action_tables(board: Board) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return edge, site and intersection of each action id, -1 without: int64, (A,) each.

    The intersections of build actions depend on the board and are left out.
    """
    record = board.array[0]
    street, split, pick, set_down = (
        int(record[name]) for name in ("first_street", "first_split", "first_pick", "first_set")
    )
    edges, sites, nodes = np.full((3, board.num_actions), -1)
    edges[street:split] = np.arange(split - street)
    sites[FIRST_BUILD:street] = np.arange(street - FIRST_BUILD) // 3
    nodes[pick:set_down] = nodes[set_down:] = np.arange(set_down - pick)
    return edges, sites, nodes

"""Maps as arrays and graphs: the same streets, sites and actions as on the boards."""

import dataclasses

import numpy as np

import busenv
from busenv import Batch, decode, load_board
from busenv.graph import batch_graphs, stack_maps
from busenv.observation import ObservationLayout

SPEC = "generated:small:train:5"


def test_maps_are_those_of_the_boards() -> None:
    maps = stack_maps(SPEC)
    for k, board in enumerate(busenv.game.board_specs.as_boards(SPEC)):
        assert maps.street_ends[k].tolist() == [[*ends] for ends in board.streets]
        assert maps.site_intersection[k].tolist() == [site.intersection for site in board.sites]
        assert maps.site_zone[k].tolist() == [site.zone for site in board.sites]
        features = maps.node_features[k]
        marks = [[i.roundabout, i.train_station] for i in board.intersections]
        assert features[:, 2:4].astype(bool).tolist() == marks
        assert features[:, 4:].sum() == len(board.sites)
        for i, site in enumerate(board.sites):
            assert features[site.intersection, 3 + site.zone] > 0, i
        np.testing.assert_array_equal(features[:, :2], maps.coordinates[k])
        vectors = maps.coordinates[k][maps.edge_index[k]]
        np.testing.assert_array_equal(maps.edge_features[k][:, :2], vectors[1] - vectors[0])


def test_coordinates_have_one_unit_on_all_sizes() -> None:
    for spec in ("city", "generated:small:1", "generated:city:1", "generated:large:1"):
        maps = stack_maps(spec)
        assert 1.0 < maps.edge_features[..., 2].mean() < 1.4
        assert (abs(maps.coordinates.max(axis=1) + maps.coordinates.min(axis=1)) < 1e-5).all()


def test_a_straight_map_has_coordinates_of_usual_size() -> None:
    city = load_board("city")
    line = tuple(
        dataclasses.replace(one, x=float(k), y=0.0) for k, one in enumerate(city.intersections)
    )
    x, y = stack_maps(dataclasses.replace(city, intersections=line)).coordinates[0].T
    assert 0.5 < np.diff(x).min() <= np.diff(x).max() < 2
    assert not y.any()


def test_actions_name_their_edges_and_nodes() -> None:
    board = load_board("city")
    maps = stack_maps(board)
    for action in range(board.num_actions):
        kind, subject, detail = decode(board, action)
        edge, site, node = maps.action_edge[action], maps.action_site[action], -1
        if kind == "grow":
            ends = board.streets[subject]
            assert maps.edge_index[0, :, edge].tolist() == [ends[detail], ends[1 - detail]]
        elif kind == "build":
            assert site == subject
            node = board.sites[subject].intersection
        elif kind in ("pick_up", "set_down"):
            node = subject
        assert (edge >= 0, site >= 0) == (kind == "grow", kind == "build")
        assert maps.action_node[0, action] == node


def test_positions_as_one_graph() -> None:
    batch = Batch(4, board=SPEC)
    batch.reset(1)
    for _ in range(60):
        batch.step(batch.masks.argmax(axis=1))
    maps, layout = stack_maps(batch.boards), ObservationLayout(batch.board)
    graphs = batch_graphs(maps, batch.board_index, batch.observations)
    rows = batch.observations * layout.scale
    assert (graphs.n_node.tolist(), graphs.n_edge.tolist()) == ([16] * 4, [56] * 4)
    for array in (graphs.nodes, graphs.edges, graphs.sites, graphs.globals):
        assert array.dtype == np.float32
    for i, index in enumerate(batch.board_index):
        nodes, edges = slice(16 * i, 16 * i + 16), slice(56 * i, 56 * i + 56)
        here = np.hstack([maps.node_features[index], layout.view(rows[i], "intersections")])
        np.testing.assert_array_equal(graphs.nodes[nodes], here)
        np.testing.assert_array_equal(graphs.edge_index[:, edges], maps.edge_index[index] + 16 * i)
        streets = layout.view(rows[i], "streets")
        for way in (0, 1):
            np.testing.assert_array_equal(graphs.edges[edges][way::2, 3:], streets)
    assert graphs.nodes.shape[1] == 29
    assert graphs.edges.shape[1] == 13
    assert graphs.globals.shape == (4, 401)
    assert graphs.sites.shape == (4, 21, 4)

"""PettingZoo's environments, with all of PettingZoo's own tests.

Not run: `max_cycles_test`, which requires truncation after a number of cycles, `bombardment_test`,
which checks the None that `step` returns, and `manual_control_test`, play by keys. Tests that
sample actions without masks pass with illegal="replace".
"""

import warnings
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pettingzoo.test
import pytest

from busenv import Game, IllegalActionError, bus_v0
from busenv.observation import observe
from tests.support.play import paid, picks, played


@pytest.mark.parametrize("players", [3, 4, 5])
@pytest.mark.filterwarnings("ignore")
def test_pettingzoo_api(players: int) -> None:
    pettingzoo.test.api_test(bus_v0.env(num_players=players), num_cycles=600)
    pettingzoo.test.api_test(
        bus_v0.raw_env(num_players=players, render_mode="ansi"), num_cycles=300
    )


def test_pettingzoo_parallel_api() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for settings in ({"num_players": 3}, {"observation_dtype": "float32"}):
            pettingzoo.test.parallel_api_test(bus_v0.parallel_env(**settings), num_cycles=400)


@pytest.mark.filterwarnings("ignore")
def test_pettingzoo_seed() -> None:
    pettingzoo.test.seed_test(bus_v0.env, num_cycles=100)
    drawn = set()
    env = bus_v0.raw_env(num_players=5)
    for seed in range(40):
        env.reset(seed=seed)
        drawn.add(env.game.first_player)
    assert drawn == set(range(5))


def test_pettingzoo_tests_without_masks() -> None:
    def turns() -> Any:
        return bus_v0.env(illegal="replace")

    def parallel() -> Any:
        return bus_v0.parallel_env(illegal="replace")

    pettingzoo.test.parallel_seed_test(parallel)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pettingzoo.test.state_test(turns(), parallel(), num_cycles=100)


@pytest.mark.filterwarnings("ignore")
def test_flat_observations_have_the_mask_in_info() -> None:
    settings: dict[str, Any] = {"observation_keys": None, "illegal": "replace"}
    pettingzoo.test.api_test(bus_v0.env(**settings), num_cycles=300)
    pettingzoo.test.parallel_api_test(bus_v0.parallel_env(**settings), num_cycles=50)
    env, twin = bus_v0.parallel_env(**settings), bus_v0.parallel_env()
    flat, dicts = env.reset(seed=1), twin.reset(seed=1)
    for _ in range(30):
        for agent, observation in dicts[0].items():
            assert (flat[0][agent] == observation["observation"]).all()
            assert (flat[-1][agent]["action_mask"] == observation["action_mask"]).all()
            assert env.observation_space(agent).contains(flat[0][agent])
        actions = {agent: int(seen["action_mask"].argmax()) for agent, seen in dicts[0].items()}
        flat, dicts = env.step(actions), twin.step(actions)


def test_pettingzoo_makes_the_registered_environments() -> None:
    if not hasattr(pettingzoo, "make"):
        pytest.skip("PettingZoo has a registry since 1.27")
    for kind in ("aec", "parallel"):
        env = pettingzoo.make(kind, "busenv/bus-v0", num_players=3)
        assert isinstance(env.unwrapped, bus_v0.raw_env)
        assert len(env.possible_agents) == 3


@pytest.mark.parametrize("players", [3, 5])
def test_aec_replays_a_game_and_pays_every_seat(players: int) -> None:
    for seed in range(5):
        game = played(players, seed)
        env = bus_v0.raw_env(num_players=players, reward="margin")
        env.reset(options={"first_player": game.first_player})
        twin = Game(players, first_player=game.first_player, seed=0)
        totals = dict.fromkeys(env.agents, 0.0)
        for action in game.history:
            agent = f"player_{twin.current_player}"
            assert env.agent_selection == agent
            seen = env.observe(agent)
            assert (seen["action_mask"] == twin.action_mask()).all()
            assert (seen["observation"] == observe(twin)).all()
            other = f"player_{(twin.current_player + 1) % players}"
            assert not env.observe(other)["action_mask"].any()
            assert (env.observe(other)["observation"] == observe(twin, int(other[-1]))).all()
            env.step(action)
            twin.step(action)
            for name, reward in env.rewards.items():
                totals[name] += reward
        points = np.array(game.points)
        margins = points - (points.sum() - points) / (players - 1)
        np.testing.assert_allclose(list(totals.values()), margins, atol=1e-4)
        assert all(env.terminations.values())
        for _ in range(players):
            env.step(None)
        assert env.agents == []


def test_aec_options_and_errors() -> None:
    env = bus_v0.env(num_players=5)
    env.reset(seed=1, options={"num_players": 3, "rules": "condensed", "first_player": 2})
    assert env.agents == ["player_0", "player_1", "player_2"]
    assert env.agent_selection == "player_2"
    for options, message in (
        ({"num_players": 6}, "num_players is 6"),
        ({"first_player": 5}, "first_player is 5"),
        ({"rules": "x"}, "unknown rules"),
    ):
        with pytest.raises(ValueError, match=message):
            env.reset(seed=2, options=options)
    env.reset()
    twin = bus_v0.env(num_players=5)
    for seed in (1, None):  # the refused resets have not drawn from its generator
        twin.reset(seed)
    assert env.unwrapped.game.seed == twin.unwrapped.game.seed
    with pytest.raises(ValueError, match="num_players is 4; allowed: at most 3"):
        bus_v0.raw_env(num_players=3).reset(options={"num_players": 4})
    with pytest.raises(ValueError, match="render_mode is 'html'"):
        bus_v0.raw_env(render_mode="html")
    env.reset(seed=1)
    before = env.unwrapped.game.to_bytes()
    for action in (7, 374):
        with pytest.raises(IllegalActionError, match=f"action {action}"):
            env.step(action)
    assert env.unwrapped.game.to_bytes() == before


def test_agents_that_do_not_take_part_observe_zeros() -> None:
    env = bus_v0.env(num_players=4)
    env.reset(seed=1)
    env.reset(seed=1, options={"num_players": 3})
    for agent in env.possible_agents:
        assert env.observation_space(agent).contains(env.observe(agent))
    assert not any(part.any() for part in env.observe("player_3").values())
    assert env.observe("player_2")["observation"].any()
    parallel = bus_v0.parallel_env(num_players=5)
    seen, infos = parallel.reset(options={"num_players": 3})
    assert [*seen] == [*infos] == parallel.agents == ["player_0", "player_1", "player_2"]


def test_waiting_agents_may_only_pass() -> None:
    env = bus_v0.parallel_env(num_players=5, reward="margin")
    seen, infos = env.reset(seed=3)
    rng, totals = np.random.default_rng(5), np.zeros(5)
    while env.agents:
        assert infos == {agent: {} for agent in env.agents}
        for seat, agent in enumerate(env.agents):
            legal = np.flatnonzero(seen[agent]["action_mask"]).tolist()
            mine = seat == env.game.current_player
            assert legal == (env.game.legal_actions() if mine else [7])
        actions = {agent: int(picks(seen[agent]["action_mask"][None], rng)[0]) for agent in seen}
        seen, rewards, over, cut_off, infos = env.step(actions)
        totals += [*rewards.values()]
        assert not any(cut_off.values())
    assert all(over.values())
    assert all(observation["action_mask"].any() for observation in seen.values())
    np.testing.assert_allclose(totals, paid(env.game, "margin"), atol=1e-4)
    assert env.step({}) == ({}, {}, {}, {}, {})


def test_illegal_actions_in_turns() -> None:
    lose = bus_v0.env(illegal="lose")
    lose.reset(seed=1)
    loser = lose.agent_selection
    assert lose.last()[4] == {"illegal_action": np.bool_(False)}
    lose.step(374)
    paid = {}
    for agent in lose.agent_iter():
        _, paid[agent], over, _, info = lose.last()
        assert over
        assert info["illegal_action"] == (agent == loser)
        lose.step(None)
    assert paid == {agent: -1.0 if agent == loser else 0.0 for agent in lose.possible_agents}
    assert len(paid) == 4
    lose.reset()
    assert not lose.terminations[lose.agent_selection]

    replace, twin = bus_v0.raw_env(illegal="replace"), bus_v0.raw_env(illegal="replace")
    for env in (replace, twin):
        env.reset(seed=1)
        legal = env.game.legal_actions()
        first = env.agent_selection
        env.step(374)
        assert env.game.history[0] in legal
        assert [name for name, info in env.infos.items() if info["illegal_action"]] == [first]
        while env.agent_selection != first or len(env.game.history) < 3:
            env.step(env.game.legal_actions()[0])
        env.step(env.game.legal_actions()[0])
        assert not any(info["illegal_action"] for info in env.infos.values())
    assert replace.game.history == twin.game.history


def test_illegal_actions_all_at_once() -> None:
    env = bus_v0.parallel_env()
    for use in (env.state, env.render):
        with pytest.raises(AssertionError, match="before"):
            use()
    for use in (lambda: env.step({}), lambda: env.game):
        with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
            use()
    env.reset(seed=1)
    mover = f"player_{env.game.current_player}"
    waiting = next(agent for agent in env.agents if agent != mover)
    with pytest.raises(IllegalActionError, match=r"action 374 .*; sample actions with"):
        env.step({mover: 374})
    with pytest.raises(ValueError, match=f"no action for {mover}, the agent to move"):
        env.step({waiting: 7})
    assert env.game.history == []

    env = bus_v0.parallel_env(illegal="lose")
    env.reset(seed=1)
    _, rewards, over, _, infos = env.step({mover: 374, waiting: 9})
    assert rewards == {agent: -1.0 if agent == mover else 0.0 for agent in env.possible_agents}
    assert all(over.values())
    assert [agent for agent, info in infos.items() if info["illegal_action"]] == [mover]
    assert env.agents == []

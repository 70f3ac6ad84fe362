"""PettingZoo, Gymnasium, batched and Stable-Baselines3: their own checks, and one game in all."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import random
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, seed_test
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

import busenv
from agents import make_agent
from busenv import Game, IllegalActionError, bus_v0
from busenv.gym_env import BusEnv
from busenv.observation import observe
from busenv.sb3 import BusVecEnv
from busenv.vector import BusVectorEnv


def picks(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random legal action for every row of masks."""
    return np.where(masks, rng.random(masks.shape), -1).argmax(axis=1)


def played(players: int, seed: int, rules: str = "capstone-2024") -> Game:
    rng = random.Random(seed)
    game = Game(players, rules, seed=seed)
    while not game.is_over:
        game.step(rng.choice(game.legal_actions()))
    return game


# PettingZoo


@pytest.mark.parametrize("players", [3, 4, 5])
@pytest.mark.filterwarnings("ignore")
def test_pettingzoo_api(players: int) -> None:
    api_test(bus_v0.env(num_players=players), num_cycles=600)
    api_test(bus_v0.raw_env(num_players=players, render_mode="ansi"), num_cycles=300)


@pytest.mark.filterwarnings("ignore")
def test_pettingzoo_seed() -> None:
    seed_test(bus_v0.env, num_cycles=300)
    drawn = set()
    env = bus_v0.raw_env(num_players=5)
    for seed in range(40):
        env.reset(seed=seed)
        drawn.add(env.game.first_player)
    assert drawn == set(range(5))


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


def test_aec_cumulative_rewards_pay_the_losers_at_the_end() -> None:
    env = bus_v0.env(num_players=4)
    env.reset(seed=3)
    rng = np.random.default_rng(0)
    paid = {}
    for agent in env.agent_iter():
        seen, reward, over, _, _ = env.last()
        if over:
            paid[agent] = reward
            env.step(None)
        else:
            assert reward == 0
            env.step(int(picks(seen["action_mask"][None], rng)[0]))
    assert sorted(round(value, 4) for value in paid.values()) == [-0.3333, -0.3333, -0.3333, 1]


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
            env.reset(options=options)
    with pytest.raises(ValueError, match="made for 3"):
        bus_v0.raw_env(num_players=3).reset(options={"num_players": 4})
    with pytest.raises(ValueError, match="render_mode is 'human'"):
        bus_v0.raw_env(render_mode="human")
    env.reset(seed=1)
    before = env.unwrapped.game.to_bytes()
    for action in (7, 374):
        with pytest.raises(IllegalActionError, match=f"action {action}"):
            env.step(action)
    assert env.unwrapped.game.to_bytes() == before


def test_ansi_rendering_names_what_is_on_the_table() -> None:
    env = bus_v0.raw_env(render_mode="ansi")
    env.reset(seed=2)
    rng = random.Random(1)
    for _ in range(60):
        env.step(rng.choice(env.game.legal_actions()))
    text = env.render()
    assert text is not None
    for words in ("clock", "seat 3", "buses", "ends at", "intersection 14:", "round"):
        assert words in text


# Gymnasium


@pytest.mark.parametrize("players", [3, 4, 5])
def test_gymnasium_check_env(players: int) -> None:
    env = gymnasium.make(
        "busenv/Bus-v0", num_players=players, illegal="lose", disable_env_checker=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*render.*")
        check_env(env.unwrapped, skip_render_check=True)


def test_make_imports_by_itself() -> None:
    program = (
        "import gymnasium; e = gymnasium.make('busenv:busenv/Bus-v0', num_players=3); "
        "o, i = e.reset(seed=1); print(o.shape, i['action_mask'].sum() > 0)"
    )
    done = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert done.split()[-1] == "True"


def test_gymnasium_plays_one_seat_against_agents() -> None:
    watched: list[int] = []

    class Watcher:
        def act(self, game: Game) -> int:
            watched.append(game.current_player)
            return game.legal_actions()[0]

    env = BusEnv(num_players=3, seat=1, opponents=["greedy", Watcher()], reward="margin")
    rng = np.random.default_rng(0)
    seen, info = env.reset(seed=5)
    total, over = 0.0, False
    while not over:
        assert env.game is not None
        assert env.game.current_player == 1 == info["seat"]
        assert (seen == observe(env.game, 1)).all()
        assert (info["action_mask"] == env.action_masks()).all()
        assert info["action_mask"].dtype == np.int8
        action = env.action_space.sample(mask=info["action_mask"])
        assert action in env.game.legal_actions()
        seen, reward, over, truncated, info = env.step(picks(env.action_masks()[None], rng)[0])
        assert not truncated
        total += reward
    points = env.game.points
    assert total == pytest.approx(points[1] - (points[0] + points[2]) / 2, abs=1e-5)
    assert set(watched) == {0}  # greedy sits next to the learner, the watcher after it


def test_gymnasium_seeds_decide_everything() -> None:
    def story(seed: int) -> list:
        env = BusEnv(num_players=[3, 4, 5], opponents="random")
        rng = np.random.default_rng(1)
        out = []
        for episode in range(3):
            seen, info = env.reset(seed=seed if episode == 0 else None)
            over = False
            while not over:
                out.append((int(seen.sum()), info["seat"]))
                action = picks(env.action_masks()[None], rng)[0]
                seen, _, over, _, info = env.step(action)
            assert env.game is not None
            out.append(env.game.history)
        return out

    assert story(4) == story(4)
    assert story(4) != story(5)


def test_gymnasium_illegal_actions() -> None:
    env = BusEnv()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(IllegalActionError, match="action 374"):
        env.step(374)
    lose = BusEnv(illegal="lose")
    lose.reset(seed=0)
    _, reward, over, _, info = lose.step(374)
    assert (reward, over, info["illegal_action"]) == (-1.0, True, True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_players": 2}, "num_players is 2"),
        ({"seat": 4}, "seat is 4; allowed: 0 to 3"),
        ({"num_players": [3, 5], "seat": 3}, "seat is 3; allowed: 0 to 2"),
        ({"opponents": ["random"]}, "1 opponents; allowed: one for all"),
        ({"opponents": "martian"}, "unknown agent 'martian'"),
        ({"reward": "gold"}, "unknown reward 'gold'"),
        ({"illegal": "ignore"}, "illegal is 'ignore'"),
        ({"render_mode": "human"}, "render_mode is 'human'"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BusEnv(**wrong)
    with pytest.raises(TypeError, match="is no agent"):
        BusEnv(opponents=[3, 4, 5])  # type: ignore[list-item]


# Batched


def test_make_vec() -> None:
    env = gymnasium.make_vec("busenv/Bus-v0", num_envs=5, num_players=[3, 4])
    assert isinstance(env.unwrapped, BusVectorEnv)
    rng = np.random.default_rng(0)
    seen, info = env.reset(seed=1)
    ended = 0
    for _ in range(500):
        assert seen.shape == env.observation_space.shape
        assert info["action_mask"].any(axis=1).all()
        seen, rewards, over, truncated, info = env.step(picks(info["action_mask"], rng))
        assert rewards.shape == (5,)
        np.testing.assert_allclose(rewards, info["rewards"][np.arange(5), info["acted"]])
        assert not truncated.any()
        ended += over.sum()
    assert ended > 5


def story(env: BusVectorEnv, steps: int = 300) -> list[bytes]:
    """Everything that a batched environment shows over some steps."""
    rng = np.random.default_rng(3)
    _, info = env.reset(seed=8)
    out = []
    for _ in range(steps):
        seen, rewards, over, _, info = env.step(picks(info["action_mask"], rng))
        arrays = (seen, rewards, over, info["rewards"], info["seat"])
        out.append(b"".join(array.tobytes() for array in arrays))
    return out


@pytest.mark.parametrize("opponent", [None, "random", "greedy"])
def test_threads_change_nothing(opponent: str | None) -> None:
    alone = story(BusVectorEnv(7, opponent=opponent))
    assert alone == story(BusVectorEnv(7, opponent=opponent, threads=2))
    assert alone == story(BusVectorEnv(7, opponent=opponent, threads=7))


def test_resets_without_a_seed_go_on_from_the_last_one() -> None:
    firsts = []
    for _ in range(2):
        env = BusVectorEnv(200)
        env.reset(seed=1)
        env.reset()
        firsts.append(env.batch.games["first"].copy())
    assert (firsts[0] == firsts[1]).all()
    env.reset(seed=1)
    assert (firsts[0] != env.batch.games["first"]).any()


@pytest.mark.parametrize("opponent", ["random", "greedy"])
@pytest.mark.parametrize("seat", [None, 2])
def test_opponents_play_inside_of_the_step(opponent: str, seat: int | None) -> None:
    env = BusVectorEnv(8, opponent=opponent, learner_seat=seat, reward="margin")
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    learners = np.arange(8) % 4 if seat is None else np.full(8, seat)
    totals = np.zeros(8)
    ended = 0
    for _ in range(400):
        waiting = env.batch.games["phase"] != busenv.Phase.OVER
        assert (info["seat"] == learners)[waiting].all()
        _, _, over, _, info = env.step(picks(info["action_mask"], rng))
        totals += np.where(waiting, env.batch.rewards[np.arange(8), learners], 0)
        for i in np.flatnonzero(over):
            final = env.batch.finals[i]
            points = final["deliveries"][:4].astype(int) - final["stones"][:4]
            margin = points[learners[i]] - (points.sum() - points[learners[i]]) / 3
            assert totals[i] == pytest.approx(margin, abs=1e-4)
            totals[i] = 0
            ended += 1
    assert ended > 20


def test_a_function_may_pay() -> None:
    def buses(before: np.ndarray, after: np.ndarray, rewards: np.ndarray) -> None:
        rewards[:] = after["buses"].astype(int) - before["buses"]

    env = BusVectorEnv(6, reward=buses)
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    totals = np.ones((6, 5))
    ended = 0
    for _ in range(600):
        _, _, over, _, info = env.step(picks(info["action_mask"], rng))
        totals += info["rewards"]
        for i in np.flatnonzero(over):
            assert totals[i, :4].tolist() == env.batch.finals[i]["buses"][:4].tolist()
            totals[i] = 1
            ended += 1
    assert ended > 10
    single = BusEnv(reward=buses)
    _, single_info = single.reset(seed=0)
    total, over_ = 1.0, False
    while not over_:
        action = picks(single.action_masks()[None], rng)[0]
        _, reward, over_, _, single_info = single.step(action)
        total += reward
    assert single.game is not None
    assert total == single.game.position().buses[single_info["seat"]]


def test_shaping_pays_what_winning_pays_over_a_game() -> None:
    for opponent in (None, "random"):
        totals = []
        for reward in ("win", "shaped"):
            env = BusVectorEnv(10, reward=reward, opponent=opponent)
            rng = np.random.default_rng(0)
            _, info = env.reset(seed=0)
            total, games, nonzero = np.zeros((10, 5)), [], 0
            for _ in range(450):
                _, _, over, _, info = env.step(picks(info["action_mask"], rng))
                total += info["rewards"]
                nonzero += int((info["rewards"][~over] != 0).sum())
                games += [total[i].round(4).tolist() for i in np.flatnonzero(over)]
                total[over] = 0
            assert (nonzero > 0) == (reward == "shaped")
            totals.append(games)
        assert len(totals[0]) > 10
        np.testing.assert_allclose(totals[0], totals[1], atol=1e-4)


def test_no_memory_grows() -> None:
    import tracemalloc

    env = BusVectorEnv(64)
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)

    def go(steps: int) -> None:
        nonlocal info
        for _ in range(steps):
            info = env.step(picks(info["action_mask"], rng))[4]

    go(50)
    tracemalloc.start()
    go(20)
    before = tracemalloc.get_traced_memory()[0]
    go(400)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000


# Stable-Baselines3


def test_sb3_masks_and_interface() -> None:
    env = BusVecEnv(6, num_players=5)
    assert is_masking_supported(env)
    env.seed(3)
    env.reset()
    masks = get_action_masks(env)
    assert masks.reshape(6, -1).shape == (6, 375)
    assert env.get_attr("render_mode") == [None] * 6
    assert env.env_is_wrapped(gymnasium.Wrapper) == [False] * 6
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(400):
        _, rewards, over, infos = env.step(picks(get_action_masks(env)[0], rng))
        assert len(infos) == 6
        assert [bool(info) for info in infos] == over.tolist()
        episodes += [info["episode"] for info in infos if info]
        assert (rewards[~over] == 0).all()
    assert len(episodes) > 5
    assert {round(e["r"], 2) for e in episodes} <= {1.0, -0.25}


@pytest.mark.filterwarnings("ignore")
def test_plain_maskable_ppo_learns_from_it() -> None:
    env = BusVecEnv(4, opponent="random", reward="margin")
    model = MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=64, seed=0, device="cpu")
    model.learn(512)
    action, _ = model.predict(env.reset(), action_masks=env.action_masks())
    assert all(env.action_masks()[i, a] for i, a in enumerate(action))


# All of them


@pytest.mark.parametrize("players", [3, 4, 5])
def test_all_faces_play_the_same_game_to_the_same_end(players: int) -> None:
    game = played(players, seed=players)
    vector, sb3 = (cls(1, num_players=players, reward="place") for cls in (BusVectorEnv, BusVecEnv))
    aec = bus_v0.raw_env(num_players=players, reward="place")
    for seed in range(100):  # until the seed draws the game's first player
        vector.reset(seed=seed)
        if int(vector.batch.games["first"][0]) == game.first_player:
            sb3.seed(seed)
            sb3.reset()
            break
    aec.reset(options={"first_player": game.first_player})
    for action in game.history:
        assert (sb3.batch.observations == vector.batch.observations).all()
        seat = int(vector.batch.seats[0])
        assert (aec.observe(f"player_{seat}")["observation"] == vector.batch.observations[0]).all()
        vector.step(np.array([action]))
        sb3.step(np.array([action]))
        aec.step(action)
    expected = [1 - 2 * place / (players - 1) for place in game.ranking()]
    for rewards in (vector.batch.rewards[0], sb3.batch.rewards[0], list(aec.rewards.values())):
        np.testing.assert_allclose(rewards[:players], expected, atol=1e-6)


def in_another_process(queue, env) -> None:  # type: ignore[no-untyped-def]
    queue.put(story(env, 30))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_batches_pickle_and_work_in_other_processes(method: str) -> None:
    env = BusVectorEnv(3, threads=2)
    here = story(env, 30)
    assert story(pickle.loads(pickle.dumps(env)), 30) == here
    assert story(copy.deepcopy(env), 30) == here
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=in_another_process, args=(queue, env))
    process.start()
    assert queue.get(timeout=120) == here
    process.join()


def test_single_environments_pickle_and_copy() -> None:
    aec = bus_v0.raw_env()
    aec.reset(seed=1)
    single = BusEnv(opponents=make_agent("greedy"))
    single.reset(seed=1)
    for twin in (copy.deepcopy(aec), pickle.loads(pickle.dumps(aec))):
        assert twin.game.position() == aec.game.position()
        twin.step(twin.game.legal_actions()[0])
        assert len(aec.game.history) == 0
    copied = copy.deepcopy(single)
    copied.step(picks(copied.action_masks()[None], np.random.default_rng(0))[0])
    assert copied.game is not None
    assert single.game is not None
    assert len(copied.game.history) > len(single.game.history)

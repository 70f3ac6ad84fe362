"""Prompts in words, renamed games, and the environment of words."""

import dataclasses
import random
import re
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from busenv import EDITIONS, Game, load_board
from busenv.agents import make_agent
from busenv.envs.text import TextEnv
from busenv.envs.text.environment import LETTERS
from busenv.envs.text.prompts import AnswerError, Prompts
from busenv.envs.text.renaming import WORDS, Renaming
from busenv.envs.text.rules_text import describe_rules
from busenv.game.board import make_board
from tests.support.play import played
from tests.support.worlds import random_board

CITY = load_board("city")


def test_rules_follow_the_edition() -> None:
    texts = {describe_rules(rules, n) for rules in EDITIONS.values() for n in (3, 4, 5)}
    assert len(texts) == 12
    assert "28 28 28 18 18 line markers by seat" in describe_rules(EDITIONS["splotter-1999"], 5)
    assert "line markers without limit" in describe_rules(EDITIONS["condensed"], 3)
    assert all("{" not in text for text in texts)


def test_a_renamed_game_is_the_same_game() -> None:
    """The renamed actions, played on the renamed board, lead to the renamed positions."""
    rng = random.Random(1)
    boards = [CITY, *(make_board(random_board(rng)) for _ in range(5))]
    rules = dataclasses.replace(EDITIONS["capstone-2024"], start_passengers=4)
    for seed, board in enumerate(boards):
        names = Renaming(board, seed)
        assert {*names.ids} == {*range(board.num_actions)}
        if board is not CITY:  # whose roundabouts get one passenger each in any order
            rules = dataclasses.replace(rules, passengers=11, start_passengers=0)
        game = Game(4, rules, board, first_player=0, seed=seed)
        renamed = Game(4, rules, names.board, first_player=0, seed=seed)
        while not game.is_over:
            assert names.position(game.position()) == renamed.position()
            actions = game.legal_actions()
            assert sorted(map(names.action, actions)) == renamed.legal_actions()
            action = rng.choice(actions)
            game.step(action)
            renamed.step(names.action(action))
        assert game.points == renamed.points


@pytest.mark.parametrize("obfuscate", [None, 7])
def test_every_action_is_read_from_its_id_and_its_words(obfuscate: int | None) -> None:
    prompts = Prompts(CITY, EDITIONS["capstone-2024"], 4, obfuscate=obfuscate)
    read = set()
    for game, _ in Game.replay(played(4, seed=1).record()):
        listed = dict(
            line.split(": ", 1)
            for line in prompts.question(game).split("legal actions:\n")[1].splitlines()
        )
        legal = game.legal_actions()
        assert sorted(prompts.read(game, number) for number in listed) == legal
        lines = [f"{number}: {words}" for number, words in listed.items()]
        assert sorted(prompts.read(game, line) for line in lines) == legal
        for words in listed.values():
            answer = f"Because 8 is bad:\n\n  {words.upper().replace('→', '->')} \n\n"
            action = prompts.read(game, answer)
            assert prompts.words[action] == words
            read.add(action)
    assert len(read) > 200
    for answer in ("", "\n", "8.", "-8", "٨", "house", "id 8", "8 9", "376", "pass\nor not"):
        with pytest.raises(AnswerError, match=r"^The last line '.*' is not an action\.$"):
            prompts.read(game, answer)
    with pytest.raises(AnswerError, match=r"^The action 'stop .*' is not legal now"):
        prompts.read(Game(4, seed=0), prompts.words[302])


def test_renamed_prompts_hold_none_of_the_games_own_words() -> None:
    game = Game(4, seed=1)
    for _ in range(70):
        game.step(game.legal_actions()[0])
    texts = []
    for seed in (1, 2):
        for listed in (True, False):
            prompts = Prompts(CITY, game.rules, 4, list_actions=listed, obfuscate=seed)
            texts.append(prompts.instructions + prompts.question(game))
    plain = Prompts(CITY, game.rules, 4, list_actions=False)
    for word in WORDS:
        pattern = re.compile(rf"\b{re.escape(word)}(e?s)?(?!\w)", re.IGNORECASE)
        assert pattern.search(plain.instructions + plain.question(game)), word
        assert not any(map(pattern.search, texts)), word
    assert len({*texts}) == 4


@pytest.mark.parametrize("settings", [{}, {"list_actions": False}, {"obfuscate": 3}])
def test_whole_games_are_played_in_words(settings: dict[str, Any]) -> None:
    env = TextEnv((3, 5), opponents="greedy", **settings)
    agent = make_agent("greedy")
    for seed in (1, 2, 3):
        text, info = env.reset(seed=seed)
        prompts = Prompts(CITY, env.game.rules, env.game.num_players, **settings)
        assert env.instructions == prompts.instructions
        terminated = False
        while not terminated:
            assert text == prompts.question(env.game)
            assert ("legal actions" in text) == settings.get("list_actions", True)
            assert {*text} <= LETTERS
            action = agent.act(env.game)
            text, reward, terminated, _, info = env.step(prompts.words[action])
            assert (info["action"], info["invalid_answers"], info["forfeit"]) == (action, 0, False)
        assert env.game.is_over
        assert "Game over" in text
        assert reward in (1, pytest.approx(-1 / (env.game.num_players - 1)))
    assert env.invalid_answers == env.forfeits == 0
    env.close()


def test_invalid_answers_are_counted_and_forfeit_after_the_retries() -> None:
    env = TextEnv(3, learner_seat=0, retries=1)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("8")
    text, _ = env.reset(seed=1)
    with pytest.raises(TypeError, match="answer is 3; allowed: a text"):
        env.step(3)
    again, reward, terminated, _, info = env.step("I resign\nno\tway")
    assert again == f"The last line 'no\\tway' is not an action.\n{text}"
    assert (reward, terminated, info["invalid_answers"], info["forfeit"]) == (0, False, 1, False)
    assert info["action"] is None
    _, _, terminated, _, info = env.step("8")
    assert (terminated, info["action"]) == (False, 8)
    before = env.game.history
    assert env.step("pass")[1:3] == (0, False)  # a decision of its own: retries start again
    text, reward, terminated, _, info = env.step("x" * 10**6)
    assert (reward, terminated, info["invalid_answers"], info["forfeit"]) == (-1, True, 3, True)
    assert len(text) < 4000
    assert env.game.history == before
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("8")
    env.reset(seed=2)
    assert env.step("nothing")[4]["invalid_answers"] == 1
    assert (env.invalid_answers, env.forfeits) == (4, 1)


def test_gymnasium_accepts_the_environment() -> None:
    check_env(TextEnv(3), skip_render_check=True)
    with pytest.raises(ValueError, match="retries is -1; allowed: 0 or more"):
        TextEnv(retries=-1)
    with pytest.raises(ValueError, match="seed is 'x'"):
        TextEnv(obfuscate="x")

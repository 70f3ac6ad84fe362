"""Programs that play by the protocol of EXEC.md, and their failures."""

import dataclasses
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from copy import copy, deepcopy
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from busenv import EDITIONS, Game, __version__
from busenv.agents import make_agent
from busenv.agents.base import Agent, AgentError
from busenv.agents.external import program
from tests.support.programs import EXAMPLE, HELPERS, command, is_gone

PAGE = EXAMPLE.with_name("EXEC.md").read_text()


def play(agent: Agent, players: int = 3, rules: str = "capstone-2024") -> Game:
    """A game of the agent, in seat 0, against the bots."""
    game = Game(players, rules, seed=1)
    others = [make_agent(spec, 5) for spec in ("greedy", "random", "greedy", "random")]
    while not game.is_over:
        seat = game.current_player
        game.step(agent.act(game) if seat == 0 else others[seat - 1].act(game))
    return game


@pytest.mark.parametrize(
    ("players", "rules"), [(3, "capstone-2024"), (4, "splotter-1999"), (5, "condensed")]
)
def test_the_example_client_plays_whole_games_repeatably(
    players: int, rules: str, pids: list[int]
) -> None:
    spec = f"exec:{command(EXAMPLE)}"
    agent, twin = make_agent(spec, seed=4), make_agent(spec, seed=4)
    first, second = play(agent, players, rules), play(agent, players, rules)
    assert play(twin, players, rules).history == first.history
    assert second.history != first.history  # its random stream continues
    agent.reset(4)
    assert play(agent, players, rules).history == first.history
    with pytest.raises(ValueError, match="the game is over"):
        agent.act(first)
    assert len(pids) == 2
    for each in (agent, twin, agent):
        each.close()
    assert all(map(is_gone, pids))


def test_the_page_shows_the_client_and_a_valid_dialogue(write: Callable[..., str]) -> None:
    assert f"```python\n{EXAMPLE.read_text()}```\n" in PAGE
    dialogue = re.findall(r"^([<>]) (.*)$", PAGE.split("## An example\n")[1], re.MULTILINE)
    spec = write(
        f"""
lines = {dialogue}
for side, line in lines:
    if side == "<":
        say(line)
    else:
        heard = sys.stdin.readline()
        if heard != line + chr(10):
            say("heard " + heard)
""",
        start=HELPERS,
    ).replace("@20:", ":")
    assert dialogue[0] == (">", f"hello busenv {__version__} protocol 1")
    game = Game(3, first_player=2, seed=0)
    agent = make_agent(spec, seed=7)
    for answer in [line for _, line in dialogue if line.startswith("bestmove")]:
        action = agent.act(game)
        assert answer == f"bestmove {action}"
        game.step(action)
    agent.close()
    dialogue_input = "".join(line + "\n" for side, line in dialogue if side == ">")
    done = subprocess.run(
        [sys.executable, EXAMPLE], input=dialogue_input, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [line for side, line in dialogue if side == "<"]


def test_programs_receive_rules_and_board_when_they_change(
    write: Callable[..., str], tmp_path: Path
) -> None:
    log = tmp_path / "log.txt"
    agent = make_agent(
        write(f"""
for line in sys.stdin:
    with open({str(log)!r}, "a") as file:
        file.write(line)
    if line.startswith("go"):
        say("bestmove " + line.split()[6])
""")
    )

    def lines_before(game: Game) -> list[str]:
        """The first words of the lines that the program receives before `position` and `go`."""
        log.unlink(missing_ok=True)
        assert agent.act(game) == game.legal_actions()[0]
        lines = log.read_text().splitlines()
        assert lines[-2].split() == ["position", *map(str, game.history)]
        assert lines[-1].startswith(f"go seat {game.current_player} time 20 legal ")
        return [line.split()[0] for line in lines[:-2]]

    new = ["rules", "board", "newgame"]
    game = Game(3, first_player=0, seed=0)
    assert lines_before(game) == ["seed", *new]
    assert lines_before(game) == []
    other = game.clone()
    game.step(8)
    game.step(11)
    assert lines_before(game) == []
    assert lines_before(other) == new
    other.step(9)
    assert lines_before(other) == []
    assert lines_before(game) == new
    for changed in (
        Game(4, first_player=0, seed=0),
        Game(4, first_player=1, seed=0),
        Game(4, "condensed", first_player=1, seed=0),
    ):
        assert lines_before(changed) == new
    agent.reset(2)
    assert lines_before(changed) == ["seed", *new]
    agent.close()
    assert lines_before(changed) == ["seed", *new]
    custom = dataclasses.replace(EDITIONS["condensed"], bus_limit=7)
    assert lines_before(Game(4, custom, first_player=1)) == new
    assert '"name": "custom"' in log.read_text()
    assert '"line_markers": null' in log.read_text()
    agent.close()


FAILURES = {
    # code of the program: pattern of the error
    "asked(); sys.exit(3)": "ended with exit code 3",
    "asked(); os.kill(os.getpid(), signal.SIGKILL)": "ended by signal 9",
    "asked(); os.close(1); time.sleep(60)": "closed its input or output",
    "asked(); say('pardon?')": "answered 'pardon\\?' to go; expected \"bestmove ID\"",
    "asked(); say('bestmove -8')": "answered 'bestmove -8' to go",
    "asked(); say('bestmove ' + '8' * 5000)": "answered 'bestmove 8{190}\\.\\.\\. \\(5,011 .*go",
    "asked(); os.write(1, bytes([255, 10]))": "answered '\N{REPLACEMENT CHARACTER}' to go",
    "asked(); say('bestmove 999')": r"chose 999, which is illegal; legal: 8, .* \(36 in all\)",
    "asked(); say('x' * 10**6)": "wrote a line of more than 65536 bytes",
}


@pytest.mark.parametrize("code", FAILURES)
def test_a_failed_program_is_reported_and_restarted(
    code: str, write: Callable[..., str], tmp_path: Path
) -> None:
    """A program that fails in its first game and plays well when it is started again."""
    mark = tmp_path / "mark"
    spec = write(f"""
if not os.path.exists({str(mark)!r}):
    open({str(mark)!r}, "w").close()
    exec({code!r})
    asked("quit")
while True:
    say("bestmove " + asked().split()[6])
""")
    agent = make_agent(spec)
    game = Game(3, seed=1)
    before = game.position()
    with pytest.raises(AgentError, match=FAILURES[code]) as caught:
        agent.act(game)
    assert str(caught.value).startswith(f"{spec}: ")
    assert game.position() == before
    agent.reset(2)
    assert play(agent).is_over
    agent.close()


@pytest.mark.parametrize("code", ["time.sleep(600)", "while True: say('info still thinking')"])
def test_a_program_that_exceeds_its_time_is_ended(
    code: str, write: Callable[..., str], pids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "GRACE", 0.1)
    agent = make_agent(write(f"asked()\n{code}", seconds=0.3))
    with pytest.raises(AgentError, match=r"no answer within 0\.3 s"):
        agent.act(Game(3, seed=1))
    assert all(map(is_gone, pids))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("", "ended with exit code 0"),
        ("import sys; sys.exit('no')", "ended with exit code 1"),
        ("import sys; sys.stdin.readline(); print('hi')", "answered 'hi' to hello; expected"),
        ("import time; time.sleep(60)", r"no answer within 0\.3 s"),
    ],
)
def test_programs_that_do_not_get_ready_are_reported(
    code: str,
    words: str,
    write: Callable[..., str],
    pids: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "busenv.agents.external.external_agent.START_SECONDS", 0.3 if "sleep" in code else 20.0
    )
    agent = make_agent(write(code, start=""))
    for _ in range(2):
        with pytest.raises(AgentError, match=words):
            agent.act(Game(3, seed=1))
    assert len(pids) == 2
    assert all(map(is_gone, pids))


def test_programs_that_cannot_be_started_are_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no program 'no-such-program' to run"):
        make_agent("exec:no-such-program --fast")
    path = tmp_path / "player"
    path.write_text("this is no program")
    with pytest.raises(FileNotFoundError, match="there is no program"):
        make_agent(f"exec:{path}")
    path.chmod(0o755)
    path.write_bytes(b"\x7fELF")
    agent = make_agent(f"exec:{path}")
    with pytest.raises(AgentError, match="cannot be started"):
        agent.act(Game(3))


def test_programs_are_opponents_in_gymnasium(pids: list[int]) -> None:
    env = gymnasium.make(
        "busenv:busenv/Bus-v0", num_players=3, opponents=[f"exec:{command(EXAMPLE)}", "greedy"]
    )
    rng = np.random.default_rng(0)
    histories = []
    for _ in range(2):
        _, info = env.reset(seed=3)
        over = False
        while not over:
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            _, _, over, _, info = env.step(action)
        histories.append(env.unwrapped.game.history)  # type: ignore[attr-defined]
    assert histories[0] != histories[1]
    assert [is_gone(pid) for pid in pids] == [False]  # one program for all episodes
    env.close()
    assert all(map(is_gone, pids))


@pytest.mark.parametrize(
    "duplicate", [copy, deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))]
)
def test_a_copy_starts_a_program_of_its_own(
    duplicate: Callable[[Agent], Agent], pids: list[int]
) -> None:
    agent, game = make_agent(f"exec:{command(EXAMPLE)}", seed=4), Game(3, seed=1)
    action = agent.act(game)
    twin = duplicate(agent)
    assert twin.act(game) == action  # the first choice by the seed
    agent.close()
    assert [is_gone(pid) for pid in pids] == [True, False]
    twin.close()


def test_games_begun_in_a_position_are_refused() -> None:
    game = Game(3, seed=1)
    game.step(8)
    agent = make_agent(f"exec:{command(EXAMPLE)}")
    with pytest.raises(ValueError, match="supports games from the set-up only"):
        agent.act(Game.from_position(game.position()))
    assert agent.act(game) in game.legal_actions()
    agent.close()

"""Start and end of the programs of `exec:`: none outlives its agent."""

import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from busenv import Game
from busenv.agents import make_agent
from tests.support.programs import EXAMPLE, command, is_gone


def test_a_program_that_ignores_quit_is_killed_with_its_children(
    write: Callable[..., str], pids: list[int], tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    child = f"import time; file = open({str(fifo)!r}, 'w'); time.sleep(600)"
    agent = make_agent(
        write(f"""
for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
    signal.signal(number, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", {child!r}])
while True:
    say("bestmove " + asked().split()[6])
    asked("quit")
    time.sleep(600)
""")
    )
    assert agent.act(Game(3, seed=1)) == 8
    held = os.open(fifo, os.O_RDONLY)  # waits until the child has opened it
    assert select.select([held], [], [], 0) == ([], [], [])
    agent.close()
    assert is_gone(pids[0])
    assert select.select([held], [], [], 20)[0] == [held]
    assert os.read(held, 1) == b""  # the other end is closed
    os.close(held)


def test_programs_are_asked_to_quit_when_python_ends(
    write: Callable[..., str], tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    spec = write(f"""
say("bestmove " + asked().split()[6])
if asked("quit"):
    open({str(mark)!r}, "w").close()
""")
    code = (
        "import sys, busenv.agents\n"
        "agent = busenv.agents.make_agent(sys.argv[1])\n"
        "print(agent.act(busenv.Game(3, seed=1)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, spec], capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.stderr) == ("8\n", "")
    assert mark.exists()


def test_no_shell_runs_the_command(tmp_path: Path) -> None:
    agent = make_agent(f"exec:{command(EXAMPLE)} ; touch {tmp_path}/sprung $(touch {tmp_path}/two)")
    assert agent.act(Game(3, seed=1)) >= 8
    agent.close()
    assert not list(tmp_path.iterdir())

"""A player for `exec:` in plain Python: chooses at random and knows no rules. See EXEC.md."""

import random
import sys


def say(line: str) -> None:
    print(line, flush=True)  # without flush the line may wait in a buffer


def main() -> None:
    chance = random.Random()
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "hello":
            say("ready example")
        elif word == "seed":
            chance.seed(int(rest[0]))
        elif word == "position":
            history = [int(action) for action in rest]
        elif word == "go":
            legal = [int(action) for action in rest[rest.index("legal") + 1 :]]
            say(f"info decision {len(history)}: {len(legal)} actions are legal")
            say(f"bestmove {chance.choice(legal)}")
        elif word == "quit":
            break


if __name__ == "__main__":
    main()

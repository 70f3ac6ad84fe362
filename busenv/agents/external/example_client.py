"""A client for `exec:` in plain Python that selects actions at random. See EXEC.md."""

import random
import sys


def send(line: str) -> None:
    print(line, flush=True)  # unflushed lines stay in a buffer


def main() -> None:
    rng = random.Random()
    for line in sys.stdin:
        command, *rest = line.split()
        if command == "hello":
            send("ready example")
        elif command == "seed":
            rng.seed(int(rest[0]))
        elif command == "position":
            history = [int(action) for action in rest]
        elif command == "go":
            legal = [int(action) for action in rest[rest.index("legal") + 1 :]]
            send(f"info decision {len(history)}: {len(legal)} actions are legal")
            send(f"bestmove {rng.choice(legal)}")
        elif command == "quit":
            break


if __name__ == "__main__":
    main()

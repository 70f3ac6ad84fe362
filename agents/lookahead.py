"""A plain Python agent: tries every legal action and takes the one with the best position.

busenv rate py:agents/lookahead.py:Lookahead --against random --games 100
"""

import random

import busenv


class Lookahead:
    """Prefers points, then buses and streets; draws among equal actions."""

    def __init__(self) -> None:
        self.random = random.Random(0)

    def reset(self, seed: int) -> None:
        self.random.seed(seed)

    def act(self, game: busenv.Game) -> int:
        seat = game.current_player

        def score(action: int) -> tuple[float, ...]:
            after = game.clone()
            after.step(action)
            position = after.position()
            reach = position.buses[seat] + len(position.streets[seat])
            return after.points[seat], reach, self.random.random()

        return max(game.legal_actions(), key=score)


if __name__ == "__main__":
    game = busenv.Game(seed=1)
    print(game.describe(Lookahead().act(game)))

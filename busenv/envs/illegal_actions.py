"""The setting `illegal` of every environment: the effect of an illegal action.

| `illegal` | an illegal action |
|---|---|
| `"raise"` | raises `busenv.IllegalActionError`; the game stays unchanged |
| `"lose"` | ends the episode with a reward of -1 |
| `"replace"` | is replaced by a legal action drawn uniformly at random |

Equal seeds and actions give equal replacements.
With "lose" and "replace", `info["illegal_action"]` is True after an illegal action.
"""

from __future__ import annotations

import numpy as np

from busenv.game.game import Game


def replacement_action(game: Game) -> int:
    """Draw a legal action uniformly at random, from the game's seed and number of decisions.

    Repeated calls for the same position return the same action.
    """
    random = np.random.default_rng([game.seed, len(game.history)])
    return int(random.choice(game.legal_actions()))

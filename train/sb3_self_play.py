"""MaskablePPO against earlier copies of its own policy."""

import copy

import numpy as np
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy

from busenv import ObservationLayout
from busenv.envs.sb3 import BusVecEnv
from busenv.observation import observe_games

total = 200_000  # decisions of the learner


class PastSelf:
    """Holds the other seats with an earlier copy of the learner's policy."""

    def choose(self, games, board):
        rows, masks = observe_games(games, board, trusted=True)
        rows = np.minimum(rows * ObservationLayout(board).scale, 1)  # as the learner's float32
        return self.policy.predict(rows, action_masks=masks)[0]


past = PastSelf()
settings = {"reward": "shaped", "observation_dtype": "float32"}
model = MaskablePPO(
    "MlpPolicy",
    BusVecEnv(64, opponents=past, **settings),
    n_steps=64,
    batch_size=1024,
    n_epochs=4,
    gamma=1.0,
    learning_rate=5e-4,
    policy_kwargs={"net_arch": [256, 256]},
)
greedy = BusVecEnv(64, opponents="greedy", **settings)
while model.num_timesteps < total:
    past.policy = copy.deepcopy(model.policy)  # a new opponent every 10 rollouts
    model.learn(min(total, 10 * 4096), reset_num_timesteps=False)
    returns, _ = evaluate_policy(
        model, greedy, 200, deterministic=False, return_episode_rewards=True, warn=False
    )
    wins = [value > 0 for value in returns]  # the return is 1 or -1/3
    print(f"{model.num_timesteps} decisions: {sum(wins) / len(wins):.0%} of games won")

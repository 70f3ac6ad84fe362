"""DQN of Tianshou with action masks, on single games."""

import gymnasium
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

import busenv  # registers the environments

total = 20_000  # decisions of the learner


def make() -> gymnasium.Env:
    keys = ("obs", "mask")
    return gymnasium.make(
        "busenv/Bus-v0", opponents="random", observation_keys=keys, observation_dtype="float32"
    )


games, tests = (DummyVectorEnv([make] * 8) for _ in range(2))
space, actions = games.observation_space[0], games.action_space[0]
model = Net(state_shape=space["obs"].shape, action_shape=actions.n, hidden_sizes=[256, 256])
policy = DiscreteQLearningPolicy(model=model, action_space=actions, eps_training=0.2)
adam = AdamOptimizerFactory(lr=3e-4)
dqn = DQN(policy=policy, optim=adam, gamma=1.0, n_step_return_horizon=50, target_update_freq=50)
buffer = VectorReplayBuffer(20_000, 8)
settings = OffPolicyTrainerParams(
    training_collector=Collector(dqn, games, buffer),
    test_collector=Collector(dqn, tests),
    max_epochs=1,
    epoch_num_steps=total,
    batch_size=256,
    collection_step_num_env_steps=160,
    update_step_num_gradient_steps_per_sample=0.1,
    test_step_num_episodes=40,
    show_progress=False,
)
mean = dqn.run_training(settings).best_score  # "win" gives 1 or -1/3
print(f"{(mean + 1 / 3) / (4 / 3):.0%} of games won")

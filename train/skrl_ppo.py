"""PPO of skrl with a policy that applies the action mask."""

import gymnasium
import numpy as np
from gymnasium.spaces.utils import flatdim
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer
from torch import nn

import busenv  # registers the environments

total = 200_000  # decisions of the learner
games = gymnasium.wrappers.vector.RecordEpisodeStatistics(
    gymnasium.make_vec(
        "busenv/Bus-v0",
        num_envs=64,
        opponents="random",
        reward="shaped",
        observation_keys=("observation", "action_mask"),
        observation_dtype="float32",
        autoreset_mode="SameStep",
    )
)
env = wrap_env(games, wrapper="gymnasium")
spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
actions = env.action_space.n


def network(outputs):
    size = flatdim(env.observation_space["observation"])
    return nn.Sequential(
        nn.Linear(size, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, outputs)
    )


class Policy(CategoricalMixin, Model):
    def __init__(self):
        Model.__init__(self, device="cpu", **spaces)
        CategoricalMixin.__init__(self)
        self.network = network(actions)

    def compute(self, inputs, role):
        mask, row = inputs["observations"].tensor_split((actions,), dim=1)  # keys in their order
        return self.network(row).masked_fill(mask == 0, -1e8), {}


class Value(DeterministicMixin, Model):
    def __init__(self):
        Model.__init__(self, device="cpu", **spaces)
        DeterministicMixin.__init__(self)
        self.network = network(1)

    def compute(self, inputs, role):
        return self.network(inputs["observations"][:, actions:]), {}


memory = RandomMemory(memory_size=64, num_envs=64)
config = PPO_CFG(
    rollouts=64,
    learning_epochs=4,
    mini_batches=4,
    discount_factor=1.0,
    learning_rate=5e-4,
    value_loss_scale=0.5,
)
config.experiment.write_interval = config.experiment.checkpoint_interval = 0  # no files
agent = PPO(
    models={"policy": Policy(), "value": Value()}, memory=memory, cfg=config, device="cpu", **spaces
)
steps = -(-total // 4096) * 64
settings = {"timesteps": steps, "headless": True, "disable_progressbar": True}
SequentialTrainer(env=env, agents=agent, cfg=settings).train()
print(f"{np.mean(np.array(games.return_queue) > 0):.0%} of games won")  # returns are 1 or -1/3

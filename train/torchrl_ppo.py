"""PPO of TorchRL on the vector environment."""

import gymnasium
import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import DTypeCastTransform, GymWrapper, RewardSum, TransformedEnv
from torchrl.modules import MLP, MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import busenv  # registers the environments

total = 100_000  # decisions of the learner
games = gymnasium.make_vec(
    "busenv/Bus-v0",
    num_envs=64,
    opponents="random",
    reward="shaped",
    observation_keys=("observation", "action_mask"),
    observation_dtype="float32",
    autoreset_mode="Disabled",
)
env = TransformedEnv(GymWrapper(games, categorical_action_encoding=True), RewardSum())
env.append_transform(DTypeCastTransform(torch.int8, torch.bool, in_keys=["action_mask"]))
size, actions = games.single_observation_space["observation"].shape[0], games.single_action_space.n
logits = TensorDictModule(MLP(size, actions, num_cells=[256, 256]), ["observation"], ["logits"])
keys = {"logits": "logits", "mask": "action_mask"}
actor = ProbabilisticActor(logits, keys, distribution_class=MaskedCategorical, return_log_prob=True)
critic = ValueOperator(MLP(size, 1, num_cells=[256, 256]), ["observation"])
advantage = GAE(gamma=1.0, lmbda=0.95, value_network=critic, average_gae=True)
loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
optimizer = torch.optim.Adam(loss.parameters(), lr=5e-4)
for data in Collector(env, actor, frames_per_batch=4096, total_frames=total):
    for _ in range(4):
        advantage(data)
        for rows in data.flatten()[torch.randperm(data.numel())].split(1024):
            parts = loss(rows)
            (parts["loss_objective"] + parts["loss_critic"] + parts["loss_entropy"]).backward()
            optimizer.step()
            optimizer.zero_grad()
    totals = data["next", "episode_reward"][data["next", "done"]]
    print(f"{(totals > 0).float().mean():.0%} of games won")

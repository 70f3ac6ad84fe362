"""PPO of AgileRL on the vector environment."""

import gymnasium
import numpy as np
from agilerl.algorithms import PPO
from agilerl.rollouts import collect_rollouts

import busenv  # registers the environments

total = 100_000  # decisions of the learner
envs = gymnasium.make_vec(
    "busenv/Bus-v0",
    num_envs=64,
    opponents="random",
    reward="shaped",
    observation_dtype="float32",
    autoreset_mode="SameStep",
)
agent = PPO(
    envs.single_observation_space,
    envs.single_action_space,
    num_envs=64,
    learn_step=4096,
    batch_size=1024,
    lr=5e-4,
    gamma=1.0,
    net_config={"encoder_config": {"hidden_size": [256, 256]}},
)
buffer = agent.rollout_buffer
compute_returns = buffer.compute_returns_and_advantages


def compute_correct_returns(last_value, last_done):
    """Compute advantages; AgileRL 2.58.0 reads `dones[t + 1]` as the end of step t."""
    dones = buffer.buffer["dones"]
    dones[1:] = dones[:-1].clone()
    compute_returns(last_value, last_done)


buffer.compute_returns_and_advantages = compute_correct_returns
last: dict = {}
for _ in range(-(-total // 4096)):
    scores, *rest = collect_rollouts(agent, envs, **last)
    last = dict(zip(("last_obs", "last_done", "last_scores", "last_info"), rest, strict=True))
    agent.learn()
    print(f"{np.mean(np.array(scores) > 0):.0%} of games won")

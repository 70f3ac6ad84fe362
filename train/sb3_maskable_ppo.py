"""MaskablePPO of Stable-Baselines3 contrib on 64 games in parallel."""

from sb3_contrib import MaskablePPO

from busenv.envs.sb3 import BusVecEnv

total = 200_000  # decisions of the learner
envs = BusVecEnv(64, opponents="random", reward="shaped", observation_dtype="float32")
model = MaskablePPO(
    "MlpPolicy",
    envs,
    n_steps=64,
    batch_size=1024,
    n_epochs=4,
    gamma=1.0,  # episodes are finite
    learning_rate=5e-4,
    policy_kwargs={"net_arch": [256, 256]},
)
while model.num_timesteps < total:
    model.learn(4096, reset_num_timesteps=False)
    wins = [episode["r"] > 0 for episode in model.ep_info_buffer]  # the return is 1 or -1/3
    print(f"{model.num_timesteps} decisions: {sum(wins) / len(wins):.0%} of games won")

"""PPO of RLlib: one policy plays every seat."""

from busenv.envs import rllib

total = 20_000  # decisions of all players
config = (
    rllib.ppo_config(num_players=(3, 4, 5), reward="shaped")
    .env_runners(num_env_runners=0)  # number of additional processes that play
    .training(gamma=1.0, lr=5e-4, train_batch_size_per_learner=min(total, 4000), num_epochs=4)
)
algorithm = config.build_algo()
for _ in range(max(total // 4000, 1)):
    result = algorithm.train()["env_runners"]
    print(result["num_env_steps_sampled_lifetime"], result.get("agent_episode_returns_mean"))
algorithm.stop()

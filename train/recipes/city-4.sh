#!/bin/sh
# The network city-4: three rounds of self-play, each followed by a new network that is fitted to
# the games so far. Two cores take 3 hours. The first round is played by city-3.
set -e
search="players=4,3,5,4,3 full_search_share=0.6 threads=2"
bots="bot_share=0.25 bots=greedy,planner,uct bot_simulations=100"
more_bots="bot_share=0.35 bots=uct,uct,planner,greedy bot_simulations=200"
fit="width=384 players=4,3,5,4,3 learning_rate=0.001 epochs=2 value_weight=0.6 score_weight=0.12
  value_target_mix=0.25 precision=bfloat16 temperature=0.1 rated=planner rate_every=18000"
runs=runs/city-4

busenv selfplay az:city-3:96 --set $search $bots samples=2180000 seed=31 --out $runs/games-1
busenv fit $runs/games-1 --set $fit threads=1 seed=12 --out $runs/network-1

busenv selfplay az:$runs/network-1/model.safetensors:96 --set $search $bots samples=1170000 \
  seed=41 --out $runs/games-2
busenv fit $runs/games-1 $runs/games-2 --set $fit threads=1 seed=13 --out $runs/network-2

busenv selfplay az:$runs/network-2/model.safetensors:96 --set $search $more_bots samples=2210000 \
  seed=51 --out $runs/games-3
busenv fit $runs/games-1 $runs/games-2 $runs/games-3 --set $fit threads=2 seed=14 \
  --out $runs/network-3

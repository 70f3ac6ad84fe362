#!/bin/sh
# The network generated-4, which plays boards of all sizes: imitation of uct:50, then three rounds of
# imitating its own search. Two cores take about 4 hours 50 minutes.
set -e
common="board=generated:mixed:train players=4,3,4,5"
fit="$common network=board width=64 learning_rate=0.0015 rated=planner rate_every=1000000"
search="$common full_search_share=0.6 threads=1 bot_share=0.3 bots=planner,planner,greedy,uct
  bot_simulations=50"
runs=runs/generated-4

busenv selfplay uct:50 --set $common seed=1 samples=700000 full_search_share=1.0 --out $runs/games-1
busenv fit $runs/games-1 --set $fit seed=1 epochs=2 rate_games=64 --out $runs/network-1

model=$runs/network-1/model.safetensors
busenv selfplay az:$model:48 --set $search seed=2 samples=197000 --out $runs/games-2 &
busenv selfplay az:$model:48 --set $search seed=3 samples=210000 --out $runs/games-3
wait
busenv fit $runs/games-2 $runs/games-3 --set $fit init_from=$model seed=4 \
  epochs=4 threads=1 temperature=0 rate_games=400 --out $runs/network-2

model=$runs/network-2/model.safetensors
busenv selfplay az:$model:48 --set $search seed=5 samples=230000 --out $runs/games-5 &
busenv selfplay az:$model:48 --set $search seed=6 samples=230000 --out $runs/games-6
wait
busenv fit $runs/games-2 $runs/games-3 $runs/games-5 $runs/games-6 --set $fit init_from=$model seed=7 \
  epochs=4 threads=1 temperature=0 rate_games=400 --out $runs/network-3

model=$runs/network-3/model.safetensors
busenv selfplay az:$model:48 --set $search seed=8 samples=230000 --out $runs/games-8 &
busenv selfplay az:$model:48 --set $search seed=9 samples=230000 --out $runs/games-9
wait
busenv fit $runs/games-5 $runs/games-6 $runs/games-8 $runs/games-9 --set $fit init_from=$model seed=10 \
  epochs=4 threads=1 temperature=0 precision=float32 rate_games=400 --out $runs/network-4

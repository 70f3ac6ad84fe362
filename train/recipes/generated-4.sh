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

# Play games with the search of network N, and fit network N + 1 to the samples in FOLDERs.
imitate_search() {  # N SAMPLES SAMPLES FOLDER...
  model=$runs/network-$1/model.safetensors
  first=$((3 * $1 - 1)) second=$((3 * $1)) fit_seed=$((3 * $1 + 1)) next=$(($1 + 1))
  busenv selfplay az:$model:48 --set $search seed=$first samples=$2 --out $runs/games-$first &
  busenv selfplay az:$model:48 --set $search seed=$second samples=$3 --out $runs/games-$second
  wait
  shift 3
  busenv fit "$@" --set $fit init_from=$model seed=$fit_seed epochs=4 threads=1 temperature=0 \
    rate_games=400 --out $runs/network-$next
}

games=$runs/games
imitate_search 1 197000 210000 $games-2 $games-3
imitate_search 2 230000 230000 $games-2 $games-3 $games-5 $games-6
imitate_search 3 230000 230000 $games-5 $games-6 $games-8 $games-9

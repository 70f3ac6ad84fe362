#!/bin/sh
# The network generated-1: imitation of uct:50 on boards of all sizes. One core takes 39 minutes.
set -e
common="board=generated:mixed:train players=4,3,4,5 seed=1"
runs=runs/generated-1

busenv selfplay uct:50 --set $common samples=700000 full_search_share=1.0 --out $runs/games
busenv fit $runs/games --set $common network=board width=64 learning_rate=0.0015 epochs=2 \
  temperature=0.1 rated=planner rate_games=64 rate_every=1000000 --out $runs/network

"""A game of OpenSpiel's tree search against random players."""

import numpy as np
import pyspiel
from open_spiel.python.algorithms.mcts import MCTSBot
from open_spiel.python.bots.uniform_random import UniformRandomBot

from busenv.envs.openspiel import PlayoutEvaluator  # this import registers the game

game = pyspiel.load_game("busenv(players=4,rules=capstone-2024)")
bots = [UniformRandomBot(seat, np.random.RandomState(seat)) for seat in range(4)]
bots[0] = MCTSBot(game, 2, 100, PlayoutEvaluator(seed=1), random_state=np.random.RandomState(1))

state = game.new_initial_state()
while not state.is_terminal():
    seat = state.current_player()
    action = bots[seat].step(state)
    print(seat, state.action_to_string(seat, action))
    state.apply_action(action)
print(state.returns())

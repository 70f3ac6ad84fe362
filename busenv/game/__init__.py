"""One game of Bus: board, rules, actions, playing, position, record."""

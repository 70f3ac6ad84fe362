"""Compiled core: arrays and numbers only. Kernels trust their input; `busenv.Game` checks it.

The rules and the functions of `busenv.core.rules` that implement them:

    R1   setup.new_game                     the initial state
    R2   setup.set_up_building              first buildings
    R3   setup.set_up_line                  first lines, there and back
    R4   select.begin_round, select.choose  selection of actions, one marker at a time
    R5   select.choose, legal.open_actions  spaces of an action
    R6   resolve.resolve                    the order of actions and of their spaces
    R7   resolve.power_of                   action power
    R8   lines.grow_line                    a line grows from either end
    R9   lines.growth                       empty streets, and sharing of others
    R10  lines.growth, lines.offer_growth   no empty street; no end can grow
    R11  lines.growth                       the end that moves on a full loop
    R12  resolve.add_bus                    buses
    R13  legal.num_arriving, resolve.arrive  passengers arrive
    R14  legal.open_sites, resolve.build    buildings
    R15  clock.stop_time, clock.set_time    the clock
    R16  clock.find_waiting                 waiting passengers, free buildings
    R17  drive.pick_up, drive.set_down      Vrrooomm!
    R18  step.end_round                     the next starting player
    R19  step.end_round                     the end of the game
    R20  score.standing                     points and ties
"""

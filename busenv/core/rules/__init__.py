"""The rules of Bus as kernels over one game and its board.

g: a GAME record, which actions change in place. b: the BOARD record of its board
(`busenv.core.state`).
"""

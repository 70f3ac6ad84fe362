"""Tests of busenv."""

import os

# Waiting threads of torch sleep instead of spinning: with other processes on the machine, two
# spinning threads train at a twelfth of the speed. torch reads this once, when it is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

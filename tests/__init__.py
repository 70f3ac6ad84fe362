"""Tests of busenv."""

import os

# Threads of torch that wait should sleep, not spin: beside other processes two that spin were found
# to learn a twelfth as fast. Read once, when torch is imported, so it is set before any test.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

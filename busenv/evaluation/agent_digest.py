"""Digests of what decides an agent's play, by which results name frozen opponents."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from busenv.agents.dependencies import file_hashes
from busenv.agents.specs import parse_spec

# Versions of how the agents of this package choose, by kind. Increment one when the decisions of
# its kind change; tests/test_agent_digest.py fails until then.
PLAY_VERSIONS = {"random": 1, "greedy": 1, "planner": 1, "uct": 1, "net": 1, "az": 2}


def agent_digest(spec: str) -> str:
    """Return 16 hexadecimal digits that change when other decisions of the agent must be expected.

    They depend on the kind of agent, its version in PLAY_VERSIONS, its budget and temperature, and
    the content of its files: weights and card of a network, or a program. The names of models and
    files do not count. Raises ValueError for an unknown spec, and FileNotFoundError for a missing
    model.
    """
    parsed = parse_spec(spec)
    decides: dict[str, Any] = {
        "kind": parsed.kind,
        "version": PLAY_VERSIONS.get(parsed.kind),
        "budget": [parsed.simulations, parsed.seconds, parsed.threads],
        "temperature": parsed.temperature,
        "files": [*file_hashes([spec]).values()],
    }
    if parsed.kind not in PLAY_VERSIONS:
        decides["spec"] = spec
    return hashlib.sha256(json.dumps(decides).encode()).hexdigest()[:16]

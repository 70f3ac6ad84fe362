"""How much learners learn: one protocol, cards of what was measured by it, and their table."""

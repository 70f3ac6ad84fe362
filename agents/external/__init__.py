"""The `exec` agent: programs in any language that speak a line protocol (EXEC.md)."""

"""Programs of any language that play by a line protocol (EXEC.md)."""

"""The agents outside of this process: `exec`, programs that speak a line protocol (EXEC.md), and
`llm`, language models behind a chat endpoint."""

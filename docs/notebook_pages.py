"""Notebooks as pages of the site, with their stored outputs."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

Files = dict[str, bytes]


def notebook_page(path: Path) -> tuple[str, Files]:
    """A notebook as Markdown, and its pictures by file name."""
    parts: list[str] = []
    pictures: Files = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"```python\n{source}\n```")
            parts += [_output(output, path.stem, pictures) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n", pictures


def _output(output: dict[str, Any], stem: str, pictures: Files) -> str:
    """An output as Markdown in its richest format; pictures are added to `pictures`."""
    data = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
    name = f"{stem}-{len(pictures) + 1}"
    if "image/svg+xml" in data:
        pictures[f"{name}.svg"] = data["image/svg+xml"].encode()
        return f"![A position]({name}.svg)"
    if "image/png" in data:
        pictures[f"{name}.png"] = base64.b64decode(data["image/png"])
        return f"![A chart]({name}.png)"
    if "text/markdown" in data:
        return data["text/markdown"]
    if "text/html" in data:
        table = re.sub(r"<style scoped>.*?</style>", "", data["text/html"], flags=re.DOTALL)
        table = table.replace(' border="1" class="dataframe"', "")  # styled like other tables
        return re.sub(r"\n\s*\n", "\n", table)  # Markdown ends an HTML block at an empty line
    return f"```text\n{''.join(output.get('text', data.get('text/plain', ''))).rstrip()}\n```"

"""Notebooks as pages of the site, with the outputs that they are kept with."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

Files = dict[str, bytes]


def notebook_page(path: Path) -> tuple[str, Files]:
    """A notebook as Markdown, and the pictures that it shows by their names beside the page."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts: list[str] = []
    pictures: Files = {}
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [_shown(output, path.stem, pictures) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n", pictures


def _shown(output: dict[str, Any], stem: str, pictures: Files) -> str:
    """An output in the richest form that it has."""
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
        table = table.replace(' border="1" class="dataframe"', "")  # it looks as all tables do
        return re.sub(r"\n\s*\n", "\n", table)  # an empty line would end it
    return f"```text\n{''.join(output.get('text', data.get('text/plain', ''))).rstrip()}\n```"

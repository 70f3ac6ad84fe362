"""Files that agents need besides the package: models, programs and Python files."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from busenv.agents import Agent, make_agent
from busenv.agents.specs import AgentSpec, parse_spec

# Suffixes of a model's files, as in `busenv.networks.model_files`, which needs torch.
WEIGHTS, CARD = ".safetensors", ".json"

Model = tuple[bytes, bytes]  # content of weights and card


def file_hashes(specs: Iterable[str]) -> dict[str, str]:
    """Return, by spec, the SHA-256 of the files that it names; specs without files are left out."""
    hashes = {}
    for spec in specs:
        if paths := _files(parse_spec(spec)):
            digests = b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)
            hashes[spec] = hashlib.sha256(digests).hexdigest()
    return hashes


def has_language_model(specs: Iterable[str]) -> bool:
    """Return whether one of the specs is `llm:...`."""
    return any(parse_spec(spec).kind == "llm" for spec in specs)


def read_models(specs: Iterable[str]) -> dict[str, Model]:
    """Return the content of the models that specs name by a path, by spec."""
    paths = {spec: Path(parse_spec(spec).model) for spec in specs}
    return {
        spec: (path.read_bytes(), path.with_suffix(CARD).read_bytes())
        for spec, path in paths.items()
        if path.suffix == WEIGHTS
    }


def build_agent(spec: str, models: dict[str, Model]) -> Agent:
    """Build an agent on a machine that may lack the models of the machine that names it.

    models: content of models by spec (`read_models`).
    """
    if spec not in models:
        return make_agent(spec)
    with TemporaryDirectory(prefix="busenv-") as temporary:
        path = Path(temporary) / f"model{WEIGHTS}"
        for file, content in zip((path, path.with_suffix(CARD)), models[spec], strict=True):
            file.write_bytes(content)
        agent = make_agent(spec.replace(parse_spec(spec).model, str(path)))
    agent.name = spec
    return agent


def _files(spec: AgentSpec) -> list[Path]:
    """Return a model's weights and card, a Python file and its argument, or a program's files."""
    if spec.model:
        from busenv.networks.model_files import model_path  # imports torch

        return [model_path(spec.model), model_path(spec.model).with_suffix(CARD)]
    words = [*shlex.split(spec.command), spec.module, spec.argument or ""]
    return [Path(word) for word in words if _is_file(word)]


def _is_file(word: str) -> bool:
    """Return whether a word of a spec is the path of a file."""
    try:
        return Path(word).is_file()
    except OSError:  # too long for a name
        return False

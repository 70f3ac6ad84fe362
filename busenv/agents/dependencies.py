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


def file_hashes(specs: Iterable[str], folder: Path = Path()) -> dict[str, str]:
    """Return a SHA-256 by spec, of the files that it names; specs without files are left out.

    folder: where relative paths of programs and Python files start.
    """
    hashes = {}
    for spec in specs:
        if paths := _files(parse_spec(spec), folder):
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


def build_agent(text: str, models: dict[str, Model], folder: Path = Path()) -> Agent:
    """Build an agent on a machine that may lack the files of the machine that names it.

    models: content of models by spec (`read_models`). folder: where relative paths of programs
    and Python files start.
    """
    spec = parse_spec(text)
    if spec.kind == "exec":
        words = [str(_file(word, folder) or word) for word in shlex.split(spec.command)]
        agent = make_agent(text.removesuffix(spec.command) + shlex.join(words))
    elif spec.kind == "py":
        words = [spec.module] if spec.argument is None else [spec.module, spec.argument]
        module, *argument = [str(_file(word, folder) or word) for word in words]
        agent = make_agent(":".join(["py", module, spec.object, *argument]))
    elif text in models:
        with TemporaryDirectory(prefix="busenv-") as temporary:
            path = Path(temporary) / f"model{WEIGHTS}"
            for file, content in zip((path, path.with_suffix(CARD)), models[text], strict=True):
                file.write_bytes(content)
            agent = make_agent(text.replace(spec.model, str(path)))
    else:
        return make_agent(text)
    agent.name = text
    return agent


def _files(spec: AgentSpec, folder: Path) -> list[Path]:
    """Return a model's weights and card, a Python file and its argument, or a program's files."""
    if spec.model:
        from busenv.networks.model_files import model_path  # imports torch

        return [model_path(spec.model), model_path(spec.model).with_suffix(CARD)]
    words = [*shlex.split(spec.command), spec.module, spec.argument or ""]
    return [path for word in words if (path := _file(word, folder))]


def _file(word: str, folder: Path) -> Path | None:
    """Return the path of a word of a spec if it is a file."""
    try:
        return folder / word if (folder / word).is_file() else None
    except OSError:  # too long for a name
        return None

"""Files that agents need besides the package: models and programs."""

from __future__ import annotations

import hashlib
import re
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from busenv.agents import Agent, make_agent
from busenv.agents.registry import AZ, EXEC, LLM, NET

# Suffixes of a model's files, as in `busenv.networks.model_files`, which needs torch.
WEIGHTS, CARD = ".safetensors", ".json"

Model = tuple[bytes, bytes]  # content of weights and card


def file_hashes(specs: tuple[str, ...], folder: Path = Path()) -> dict[str, str]:
    """Return a SHA-256 by spec, of the files that it names; specs without files are left out.

    folder: where relative paths of programs start.
    """
    hashes = {}
    for spec in specs:
        if paths := _files(spec, folder):
            digests = b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)
            hashes[spec] = hashlib.sha256(digests).hexdigest()
    return hashes


def is_program(spec: str) -> bool:
    """Return whether a spec names an external program."""
    return re.fullmatch(EXEC, spec) is not None


def language_model(spec: str) -> str:
    """Return the language model in a spec, "" for none."""
    match = re.fullmatch(LLM, spec)
    return match[3] if match else ""


def language_settings(specs: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings of requests to language models, if a spec names one; never their key."""
    if not any(map(language_model, specs)):
        return {}
    from busenv.agents.external.llm_settings import load_settings

    settings = load_settings()
    return {"llm": {"options": settings.options, "seconds": settings.seconds}}


def read_models(specs: tuple[str, ...]) -> dict[str, Model]:
    """Return the content of the models that specs name by a path, by spec."""
    paths = {spec: Path(model_of(spec)) for spec in specs if model_of(spec).endswith(WEIGHTS)}
    return {
        spec: (path.read_bytes(), path.with_suffix(CARD).read_bytes())
        for spec, path in paths.items()
    }


def build_agent(spec: str, models: dict[str, Model], folder: Path = Path()) -> Agent:
    """Build an agent on a machine that may lack the files of the machine that names it.

    models: content of models by spec (`read_models`). folder: where relative paths of a program's
    command start.
    """
    if is_program(spec):
        kind, _, command = spec.partition(":")
        words = [str(_program_file(word, folder) or word) for word in shlex.split(command)]
        agent = make_agent(f"{kind}:{shlex.join(words)}")
    elif spec in models:
        with TemporaryDirectory(prefix="busenv-") as temporary:
            path = Path(temporary) / f"model{WEIGHTS}"
            for file, content in zip((path, path.with_suffix(CARD)), models[spec], strict=True):
                file.write_bytes(content)
            agent = make_agent(spec.replace(model_of(spec), str(path)))
    else:
        return make_agent(spec)
    agent.name = spec
    return agent


def model_of(spec: str) -> str:
    """Return the name or path of the model in a spec, "" for none."""
    match = re.fullmatch(NET, spec) or re.fullmatch(AZ, spec)
    return match[2] if match else ""


def _files(spec: str, folder: Path) -> list[Path]:
    """Return a model's weights and card, or the words of a program's command that are files."""
    if is_program(spec):
        words = shlex.split(spec.partition(":")[2])
        return [path for word in words if (path := _program_file(word, folder))]
    if name := model_of(spec):
        from busenv.networks.model_files import model_path  # imports torch

        return [model_path(name), model_path(name).with_suffix(CARD)]
    return []


def _program_file(word: str, folder: Path) -> Path | None:
    """Return the path of a word of a command if it is a file."""
    try:
        return folder / word if (folder / word).is_file() else None
    except OSError:  # too long for a name
        return None


def short_spec(spec: str) -> str:
    """Return a spec without a model's folder, or without a program's folder and arguments."""
    if is_program(spec):
        kind, _, command = spec.partition(":")
        return f"{kind}:{Path((command.split() or [''])[0]).name}"
    model = model_of(spec)
    return spec.replace(model, Path(model).stem) if model.endswith(WEIGHTS) else spec

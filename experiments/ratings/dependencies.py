"""What agents need besides the package: the model, or the program, that a spec names."""

from __future__ import annotations

import hashlib
import re
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

from busenv.agents import Agent, make_agent
from busenv.agents.registry import AZ, NET

WEIGHTS, CARD = (
    ".safetensors",
    ".json",
)  # of a model: `busenv.agents.networks.model_files`, without torch

Model = tuple[bytes, bytes]  # weights and card


def file_hashes(specs: tuple[str, ...]) -> dict[str, str]:
    """SHA-256 of the files that specs name: another file of the same name is another agent."""
    found = {}
    for spec in specs:
        if paths := _files(spec):
            contents = b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)
            found[spec] = hashlib.sha256(contents).hexdigest()
    return found


def is_program(spec: str) -> bool:
    return spec.partition(":")[0].partition("@")[0] == "exec"


def read_models(specs: tuple[str, ...]) -> dict[str, Model]:
    """The models that specs name by a path, by spec."""
    paths = {spec: Path(model_of(spec)) for spec in specs if model_of(spec).endswith(WEIGHTS)}
    return {
        spec: (path.read_bytes(), path.with_suffix(CARD).read_bytes())
        for spec, path in paths.items()
    }


def build(spec: str, models: dict[str, Model]) -> Agent:
    """An agent, where the file that its spec names need not be: its model may be in `models`."""
    if spec not in models:
        return make_agent(spec)
    with TemporaryDirectory(prefix="busenv-") as folder:
        path = Path(folder) / f"model{WEIGHTS}"
        for place, content in zip((path, path.with_suffix(CARD)), models[spec], strict=True):
            place.write_bytes(content)
        agent = make_agent(spec.replace(model_of(spec), str(path)))
    agent.name = spec
    return agent


def model_of(spec: str) -> str:
    """The name or path of the model that a spec names; "" without one."""
    found = re.fullmatch(NET, spec) or re.fullmatch(AZ, spec)
    return found[2] if found else ""


def _files(spec: str) -> list[Path]:
    """A model and its card, or each word of a program's command that is a file."""
    if is_program(spec):
        words = shlex.split(spec.partition(":")[2])
        return [path for word in words if (path := _program_file(word))]
    if name := model_of(spec):
        from busenv.agents.networks.model_files import model_path  # needs torch, as no other does

        return [model_path(name), model_path(name).with_suffix(CARD)]
    return []


def _program_file(word: str) -> Path | None:
    """The file that a word of a command names, if it is one."""
    try:
        return Path(word) if Path(word).is_file() else None
    except OSError:  # too long for a name
        return None

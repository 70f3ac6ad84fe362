"""What the documentation site takes from the repository, so that every text stands in one place.

Pages under docs/ link to files of the repository as they would on a code host
(`../busenv/RULES.md`); here such a link leads to that file's page, or to a copy of the file. A line
`<!-- table: NAME -->` is replaced by what the code says now.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from notebook_pages import notebook_page

import busenv
from busenv.observation import ObservationLayout

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "build/packages"
COPIES = "files"  # the site's folder for files of the repository that are no pages

# Pages that stand elsewhere in the repository, and what they are called on the site.
PAGES = {
    "busenv/RULES.md": "rules.md",
    "agents/external/EXEC.md": "exec.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
}
# Pages of the reference: package, its folder, and what stands above its modules.
REFERENCE = {
    "busenv": ("busenv", "What `import busenv` gives, and the modules behind it."),
    "envs": ("busenv/envs", "The environments that other libraries know."),
    "render": ("busenv/render", "Drawing: SVG, pixels, text and replay pages."),
    "core": (
        "busenv/core",
        "The compiled core, module by module. It works on arrays and trusts its input; use it "
        "through `busenv.Game`, `busenv.batch.batch.Batch` and the environments.",
    ),
    "agents": ("agents", "Who plays: from random to trained."),
    "train": ("train", "Who learns: self-play PPO."),
    "experiments": ("experiments", "Who measures: ratings, benchmarks, studies, the command line."),
}
NOTEBOOKS = {
    f"notebooks/{path.name}": f"notebooks/{path.stem}.md"
    for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
}
PARTS = {"bench": [("bench", "agents")]}  # of commands, with a help of their own
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


def on_startup(**_: Any) -> None:
    """Put the packages together as a wheel does: the reference reads them there."""
    shutil.rmtree(PACKAGES, ignore_errors=True)
    for folder in ("busenv", "agents", "train", "experiments"):
        target = PACKAGES / ("busenv" if folder == "busenv" else f"busenv/{folder}")
        shutil.copytree(ROOT / folder, target, ignore=shutil.ignore_patterns("__pycache__"))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Do so again where `mkdocs serve` builds the site anew."""
    on_startup()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand elsewhere, the notebooks, and the reference."""
    for source, name in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    for source, name in NOTEBOOKS.items():
        text, pictures = notebook_page(ROOT / source)
        files.append(File.generated(config, name, content=text))
        for picture, data in pictures.items():
            files.append(File.generated(config, f"notebooks/{picture}", content=data))
    for name, (folder, words) in REFERENCE.items():
        content = _reference(name, folder, words)
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    return files


def _reference(name: str, folder: str, words: str) -> str:
    """A page with every module of a package (of `busenv` itself, those at its top)."""
    package = "busenv" if name == "busenv" else f"busenv.{name}"
    paths = sorted((ROOT / folder).glob("*.py" if name == "busenv" else "**/*.py"))
    lines = [f"# {package}", "", words, ""]
    for path in paths:
        parts = path.relative_to(ROOT / folder).with_suffix("").parts
        module = ".".join((package, *parts)).removesuffix(".__init__")
        options = ["    options:", "      members: false"] if name == "core" else []
        lines += [f"::: {module}", *options, ""]
    return "\n".join(lines)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in what the code says, and lead links out of docs/ to where their files are here."""
    markdown = re.sub(r"<!-- table: (\w+) -->", lambda found: TABLES[found[1]](), markdown)
    pages = PAGES | NOTEBOOKS
    sources = {name: source for source, name in pages.items()}
    here = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def lead(found: re.Match[str]) -> str:
        if re.match(r"\w+:", found[2]):
            return found[0]  # another site
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), found[2]))
        if target in pages:
            goal = pages[target]
        elif target.startswith("docs/"):
            goal = target.removeprefix("docs/")
        elif (ROOT / target).is_file():
            goal = f"{COPIES}/{target}"
            if files.get_file_from_path(goal) is None:
                files.append(File.generated(config, goal, abs_src_path=str(ROOT / target)))
        else:
            return found[0]  # mkdocs tells that it leads nowhere
        return found[1] + posixpath.relpath(goal, posixpath.dirname(page.file.src_uri)) + found[3]

    return LINK.sub(lead, markdown)


def _observation() -> str:
    """The parts of an observation of the city."""
    layout = ObservationLayout(busenv.load_board("city"))
    lines = []
    for block, where in layout.blocks.items():
        size = where.entries * where.width
        lines += [
            f"### {block}",
            "",
            f"{where.entries} x {where.width} bytes, {where.start} to {where.start + size - 1}"
            + ("; all of one feature, then all of the next." if where.planes else "."),
            "",
            "| part | shape | usually up to | meaning |",
            "|---|---|---:|---|",
        ]
        lines += [
            f"| `{part.name}` | {part.shape} | {part.high} | {part.meaning} |"
            for part in layout.parts.values()
            if part.block == block
        ]
        lines.append("")
    return "\n".join(lines)


def _editions() -> str:
    """The fields of every edition."""
    editions = busenv.EDITIONS
    fields = [*next(iter(editions.values())).__dataclass_fields__]
    lines = ["| field | " + " | ".join(f"`{name}`" for name in editions) + " |"]
    lines.append("|---|" + "---|" * len(editions))
    for field in fields:
        values = [str(getattr(rules, field)) for rules in editions.values()]
        lines.append(f"| `{field}` | " + " | ".join(values) + " |")
    return "\n".join(lines)


def _commands() -> str:
    """What `busenv --help` prints, and the help of each command that it lists."""
    contents = _help()
    names = re.findall(r"^ {2,4}([a-z]+)(?: {2,}|$)", contents, re.MULTILINE)
    parts = [contents]
    for words in chain.from_iterable([(name,), *PARTS.get(name, [])] for name in names):
        parts.append(f"## {' '.join(words)}\n\n{_help(*words)}")
    return "\n\n".join(parts)


def _help(*words: str) -> str:
    """What `busenv WORDS --help` prints at 80 columns."""
    environment = {**os.environ, "COLUMNS": "80"}
    command = [sys.executable, "-m", "busenv.experiments.cli", *words, "--help"]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return f"```text\n{told.stdout}```"


TABLES: dict[str, Callable[[], str]] = {
    "commands": _commands,
    "editions": _editions,
    "observation": _observation,
}

"""MkDocs hooks: pages from elsewhere in the repository, notebooks, and the API reference.

Pages link to files of the repository as on a code host (`../busenv/RULES.md`). On the site such a
link leads to the page made from that file, or to a copy of the file.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from notebook_pages import notebook_page

ROOT = Path(__file__).parents[1]
COPIES = "files"  # folder of the site for repository files that are not pages

# Pages outside of docs/, and their names on the site.
PAGES = {
    "busenv/RULES.md": "rules.md",
    "busenv/agents/external/EXEC.md": "exec.md",
    "agents/README.md": "agents_to_copy.md",
    "train/README.md": "training_scripts.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
}
NOTEBOOKS = {
    f"notebooks/{path.name}": f"notebooks/{path.stem}.md"
    for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
}
# Packages with a page of the API reference.
REFERENCE = re.findall(r"- (busenv[.\w]*): reference/", (ROOT / "mkdocs.yml").read_text("utf-8"))
SCRIPT = re.compile(r"^\[`(\w+/\w+\.py)`\]\([^)]*\)$", re.MULTILINE)  # alone on its line
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside of docs/, the notebooks and the reference."""
    for source, name in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    for source, name in NOTEBOOKS.items():
        text, pictures = notebook_page(ROOT / source)
        files.append(File.generated(config, name, content=text))
        for picture, data in pictures.items():
            files.append(File.generated(config, f"notebooks/{picture}", content=data))
    for name in REFERENCE:
        path = f"reference/{name.rpartition('.')[2]}.md"
        files.append(File.generated(config, path, content=_reference(name)))
    return files


def _reference(name: str) -> str:
    """A Markdown page with every module of a package."""
    lines = [f"# {name}", ""]
    folder = ROOT.joinpath(*name.split("."))
    for path in sorted(folder.glob("*.py" if name == "busenv" else "**/*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts).removesuffix(".__init__")
        options = {"busenv.core": "members: false", "busenv.game": "inherited_members: true"}.get(
            name
        )
        lines += [f"::: {module}", *(["    options:", f"      {options}"] if options else []), ""]
    return "\n".join(lines)


def _with_code(link: re.Match[str]) -> str:
    """A link to a script, followed by its code."""
    code = (ROOT / link[1]).read_text(encoding="utf-8")
    return f"{link[0]}\n\n```python\n{code}```"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Show linked scripts, and redirect links that leave docs/ to their page or copy."""
    markdown = SCRIPT.sub(_with_code, markdown)
    pages = PAGES | NOTEBOOKS
    sources = {name: source for source, name in pages.items()}
    here = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def redirect(link: re.Match[str]) -> str:
        if re.match(r"\w+:", link[2]):
            return link[0]  # another site
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), link[2]))
        if target in pages:
            goal = pages[target]
        elif target.startswith("docs/"):
            goal = target.removeprefix("docs/")
        elif (ROOT / target).is_file():
            goal = f"{COPIES}/{target}"
            if files.get_file_from_path(goal) is None:
                files.append(File.generated(config, goal, abs_src_path=str(ROOT / target)))
        else:
            return link[0]  # mkdocs reports the broken link
        return link[1] + posixpath.relpath(goal, posixpath.dirname(page.file.src_uri)) + link[3]

    return LINK.sub(redirect, markdown)

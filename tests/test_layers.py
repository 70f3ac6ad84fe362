"""Imports between the modules of the package, read from their syntax trees."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter

from tests.support.pages import LAYERS, find_modules

SHARED = {"busenv.envs.observation_format", "busenv.envs.illegal_actions"}  # for all environments
# PettingZoo's two interfaces, RLlib's environment over the AEC interface, text over Gymnasium's,
# and the vector environment, which makes the one on a GPU.
BUILT_ON = {
    *((f"busenv.envs.{name}", "busenv.envs.pettingzoo") for name in ("parallel", "rllib")),
    ("busenv.envs.text", "busenv.envs.gymnasium"),
    ("busenv.envs.vector", "busenv.envs.cuda_vector"),
}

MODULES = find_modules()


def imports_of(source: str, module: str = "") -> set[str]:
    """The modules of the package that a source imports; without those under `if TYPE_CHECKING:`."""
    imported = set()
    for node in _walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: a relative import"
            # A name may be a module's, or one in the package's __init__.
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            imported |= {name if name in MODULES else str(node.module) for name in inside}
    return imported & {*MODULES}


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Every node outside of `if TYPE_CHECKING:`."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from _walk(child)


IMPORTS = {name: imports_of(path.read_text(), name) for name, path in MODULES.items()}


def layer_of(module: str) -> int:
    return LAYERS.index(".".join(module.split(".")[:2])) if module.startswith(LAYERS[1:]) else 0


def test_imports_go_to_the_same_or_a_lower_layer() -> None:
    pairs = [(name, other) for name, others in IMPORTS.items() for other in others]
    assert [pair for pair in pairs if layer_of(pair[1]) > layer_of(pair[0])] == []


def test_the_core_imports_only_itself_and_no_environment_another() -> None:
    core = [name for name in MODULES if name.startswith("busenv.core")]
    assert {o for name in core for o in IMPORTS[name] if not o.startswith("busenv.core")} == set()
    environments = {name for name in MODULES if name.startswith("busenv.envs.")} - SHARED
    assert len(environments) >= 4
    pairs = {(name, other) for name in environments for other in IMPORTS[name] & environments}
    assert pairs == BUILT_ON


def test_imports_have_no_cycle() -> None:
    TopologicalSorter(IMPORTS).prepare()  # CycleError names the cycle


def test_imports_are_read_from_all_layers_and_statements() -> None:
    assert {layer_of(name) for name in MODULES} == {0, 1, 2, 3}
    assert layer_of("busenv.agents.search.uct_agent") == 1
    assert "busenv.agents" in IMPORTS["busenv.experiments.ratings.rating"]
    assert imports_of("def f():\n    from busenv.core import kernels\n") == {"busenv.core.kernels"}
    assert imports_of("from busenv import Game\nimport numpy\n") == {"busenv"}
    assert imports_of("if TYPE_CHECKING:\n    from busenv.game.game import Game\n") == set()

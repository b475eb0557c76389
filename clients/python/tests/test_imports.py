"""Modules of the client import each other in one direction."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import broomwagon

ROOT = Path(broomwagon.__file__).parent


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(name: str, path: Path, names: set[str]) -> set[str]:
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                member = f"{module}.{alias.name}"
                found.add(member if member in names else module)
    return (found & names) - {name}


def test_modules_import_each_other_in_one_direction() -> None:
    modules = {_name(path): path for path in ROOT.rglob("*.py")}
    graph = {name: _imported(name, path, set(modules)) for name, path in modules.items()}
    assert sum(map(len, graph.values())) > len(modules)
    # Raises CycleError with the names of a circle.
    TopologicalSorter(graph).prepare()

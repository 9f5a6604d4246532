"""How many of ComfyUI's published workflow templates convert here, and which node types are missing.

The templates are those of the package comfyui-workflow-templates-json (a development dependency).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from app.workflow.convert import convert
from app.workflow.schema import is_workflow

Definitions = Mapping[str, Mapping[str, Any]]
PACKAGE = "comfyui_workflow_templates_json"


@dataclass(slots=True)
class Census:
    """`missing`: in how many templates each type is missing. `raised`: what could not be converted."""

    total: int = 0
    complete: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    raised: dict[str, str] = field(default_factory=dict)

    def take(self, name: str, document: Mapping[str, Any], definitions: Definitions) -> None:
        self.total += 1
        try:
            report = convert(document, definitions).report
        except Exception as error:  # counting what fails is the purpose
            self.raised[name] = f"{type(error).__name__}: {error}"
            return
        self.missing.update(list(report.missing_types))
        self.complete += not report.missing_types


def templates() -> Iterator[tuple[str, dict[str, Any]]]:
    package = find_spec(PACKAGE)
    if package is None:
        raise SystemExit("the package is missing: pip install comfyui-workflow-templates-json")
    for folder in package.submodule_search_locations or ():
        for path in sorted(Path(folder).rglob("*.json")):
            document = json.loads(path.read_text())
            if is_workflow(document):
                yield path.stem, document


def census(definitions: Definitions) -> Census:
    found = Census()
    for name, document in templates():
        found.take(name, document, definitions)
    return found


def show(found: Census, most: int) -> None:
    converted = found.total - len(found.raised)
    print(f"templates                 {found.total:6}")
    print(f"convert                   {converted:6}  {converted / found.total:6.1%}")
    print(f"with no missing type      {found.complete:6}  {found.complete / found.total:6.1%}")
    for name, error in found.raised.items():
        print(f"  {name}: {error}")
    print(f"missing types             {len(found.missing):6}  by the number of templates that need them:")
    for kind, count in found.missing.most_common(most):
        print(f"  {count:5}  {kind}")


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.templates", description=__doc__)
    parser.add_argument(
        "--object-info", type=Path, action="append", metavar="FILE", help="definitions to convert by"
    )
    parser.add_argument("--most", type=int, default=50, help="how many missing types to list (default 50)")
    options = parser.parse_args(argv)
    show(census(_definitions(options.object_info)), options.most)


def _definitions(paths: Sequence[Path] | None) -> Definitions:
    if paths is None:
        # imports torch, which a census by files does without
        from app.cli.installed import installed_definitions
        from app.flags import parse

        return installed_definitions(parse([]))
    definitions: dict[str, Mapping[str, Any]] = {}
    for path in paths:
        definitions.update(json.loads(path.read_text()))
    return definitions


if __name__ == "__main__":
    main(sys.argv[1:])

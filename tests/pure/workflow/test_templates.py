"""Every published workflow template converts; a type that is not installed is reported by name."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from app.workflow.convert import convert
from app.workflow.schema import is_workflow

DEFINITIONS: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "object_info.json").read_text())


def templates() -> dict[str, Any]:
    package = find_spec("comfyui_workflow_templates_json")
    assert package is not None, "the test dependency comfyui-workflow-templates-json is not installed"
    found = {}
    for folder in package.submodule_search_locations or ():
        for path in Path(folder).rglob("*.json"):
            document = json.loads(path.read_text())
            if is_workflow(document):
                found[path.stem] = document
    return found


def test_every_template_converts() -> None:
    documents = templates()
    assert len(documents) > 500
    complete = 0
    for document in documents.values():
        conversion = convert(document, DEFINITIONS)
        complete += not conversion.report.missing_types
        for node in conversion.prompt.values():
            known = node["class_type"] in DEFINITIONS
            assert known or node["class_type"] in conversion.report.missing_types
    assert complete > 0

"""Every published workflow template converts; a type that is not installed is reported by name."""

import json

import pytest

from app.workflow.convert import convert
from bench.templates import Census, census, main, show, templates
from tests.pure.workflow.drawn import DEFINITIONS, GOLDEN, graph, node


@pytest.fixture(scope="module")
def found() -> Census:
    return census(DEFINITIONS)


def test_every_template_converts(found: Census) -> None:
    assert found.total >= 644
    assert found.raised == {}
    assert 0 < found.complete < found.total


def test_what_is_missing_is_counted_by_templates(found: Census) -> None:
    kind, count = found.missing.most_common()[-1]
    mentioned = [document for _, document in templates() if f'"{kind}"' in json.dumps(document)]
    assert kind not in DEFINITIONS
    assert count == sum(kind in convert(document, DEFINITIONS).report.missing_types for document in mentioned)


def test_what_raises_is_counted_and_named() -> None:
    counted = Census()
    counted.take("fine", graph([node(1, "T_Src")]), DEFINITIONS)
    counted.take("broken", {"nodes": 3}, DEFINITIONS)
    assert (counted.total, counted.complete) == (2, 1)
    assert counted.raised["broken"].startswith("NotAWorkflow: ")


def test_the_census_shows_shares_and_missing_types(found: Census, capsys: pytest.CaptureFixture[str]) -> None:
    show(found, most=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["convert", str(found.total), "100.0%"]
    assert [line.split()[-1] for line in lines[4:]] == [kind for kind, _ in found.missing.most_common(2)]


def test_definitions_come_from_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = [("one", graph([node(1, "LoadImage"), node(2, "T_Src")])), ("two", graph([node(1, "LoadImage")]))]
    monkeypatch.setattr("bench.templates.templates", lambda: iter(few))
    main(["--object-info", str(GOLDEN / "object_info.json")])
    assert "with no missing type           1   50.0%" in capsys.readouterr().out
    both = [str(GOLDEN / name) for name in ("object_info.json", "object_info_synthetic.json")]
    main(["--object-info", both[0], "--object-info", both[1]])
    assert "with no missing type           2  100.0%" in capsys.readouterr().out

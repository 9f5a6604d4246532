import json

from app.json_text import encode


def test_numbers_that_json_lacks_become_null_and_all_else_stays() -> None:
    value = {"a": [1.5, float("nan")], "b": (float("inf"), True, None), "c": {"d": -float("inf")}, "e": "NaN"}
    assert json.loads(encode(value)) == {
        "a": [1.5, None],
        "b": [None, True, None],
        "c": {"d": None},
        "e": "NaN",
    }


def test_what_is_no_json_at_all_is_written_as_text() -> None:
    assert json.loads(encode({"a": {1}, "b": complex(1, 2)})) == {"a": "{1}", "b": "(1+2j)"}

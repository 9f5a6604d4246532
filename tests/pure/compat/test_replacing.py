from app.compat.replacing import replaced
from tests.fakes import box

KNOWN = {"New", "Other"}.__contains__
REPLACEMENTS = {
    "Old": [
        {"new_node_id": "NotHere"},
        {
            "new_node_id": "New",
            "input_mapping": [
                {"new_id": "size", "old_id": "width"},
                {"new_id": "mode", "set_value": "fast"},
                {"new_id": "rest", "old_id": "absent"},
            ],
            "output_mapping": [{"old_idx": 1, "new_idx": 0}],
        },
    ]
}


def test_a_class_that_is_gone_becomes_the_first_that_exists_and_links_follow() -> None:
    prompt = {"1": box("Old", width=["3", 0], height=2), "2": box("Other", x=["1", 1], y=["1", 2], z=[1, 2])}
    assert replaced(prompt, REPLACEMENTS, KNOWN) == {
        "1": box("New", size=["3", 0], mode="fast"),
        "2": box("Other", x=["1", 0], y=["1", 2], z=[1, 2]),
    }


def test_a_class_that_is_there_or_has_no_stand_in_stays() -> None:
    prompt = {"1": box("Old", width=1), "2": box("Gone"), "3": "no node"}
    assert replaced(prompt, REPLACEMENTS, lambda _id: True) == prompt
    assert replaced(prompt, {}, KNOWN) == prompt

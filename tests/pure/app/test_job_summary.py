from typing import Any

from app import job_summary


def history_item(
    outputs: dict[str, Any], *messages: tuple[str, dict[str, Any]], good: bool = True
) -> dict[str, Any]:
    status = {
        "status_str": "success" if good else "error",
        "completed": good,
        "messages": [list(m) for m in messages],
    }
    extra_data = {"create_time": 100, "extra_pnginfo": {"workflow": {"id": "w"}}}
    return {"prompt": [3, "p", {}, extra_data, ["9"]], "outputs": outputs, "status": status, "meta": {}}


def image(name: str, kind: str = "output") -> dict[str, str]:
    return {"filename": name, "subfolder": "", "type": kind}


def test_a_saved_picture_is_preferred_to_a_temporary_one_and_to_text() -> None:
    outputs = {
        "1": {"text": ["words"]},
        "2": {"images": [image("t.png", "temp")]},
        "3": {"images": [image("a.png"), image("b.png")], "animated": [True]},
    }
    job = job_summary.from_history(history_item(outputs))
    assert job["preview_output"] == {**image("a.png"), "nodeId": "3", "mediaType": "images"}
    assert (job["outputs_count"], job["previewable_outputs_count"]) == (4, 4)


def test_long_text_is_cut() -> None:
    job = job_summary.from_history(history_item({"1": {"text": ["x" * 2000]}}))
    assert job["preview_output"] == {
        "content": "x" * 1024,
        "mediaType": "text",
        "nodeId": "1",
        "truncated": True,
    }


def test_models_are_shown_and_other_files_only_counted() -> None:
    outputs = {"1": {"result": ["mesh/a.glb"], "latents": [image("a.latent")]}}
    job = job_summary.from_history(history_item(outputs))
    assert (job["outputs_count"], job["previewable_outputs_count"]) == (2, 1)
    assert job["preview_output"] == {
        "filename": "a.glb",
        "subfolder": "mesh",
        "type": "output",
        "nodeId": "1",
        "mediaType": "3d",
    }


def test_times_and_the_error_come_from_the_messages() -> None:
    start = ("execution_start", {"timestamp": 110})
    error = ("execution_error", {"timestamp": 140, "node_id": "2"})
    job = job_summary.from_history(history_item({}, start, error, good=False))
    assert (job["status"], job["execution_error"]["node_id"]) == ("failed", "2")
    assert (job["create_time"], job["execution_start_time"], job["execution_end_time"]) == (100, 110, 140)
    assert (job["workflow_id"], job["priority"]) == ("w", 3)


def test_an_interrupted_job_is_cancelled() -> None:
    stopped = ("execution_interrupted", {"timestamp": 140})
    assert job_summary.from_history(history_item({}, stopped, good=False))["status"] == "cancelled"


def test_what_is_unknown_is_left_out_but_zeros_stay() -> None:
    job = job_summary.from_queue([0, "p", {}, {}, []], "pending")
    assert job == {"id": "p", "status": "pending", "priority": 0, "outputs_count": 0}


def test_jobs_are_ordered_by_creation_or_by_duration() -> None:
    jobs = [
        {"id": "a", "create_time": 1, "execution_start_time": 0, "execution_end_time": 9},
        {"id": "b", "create_time": 2, "execution_start_time": 0, "execution_end_time": 5},
        {"id": "c", "create_time": 3},
    ]
    by_creation = job_summary.ordered(jobs, "created_at", descending=True)
    by_duration = job_summary.ordered(jobs, "execution_duration", descending=False)
    assert [job["id"] for job in by_creation] == ["c", "b", "a"]
    assert [job["id"] for job in by_duration] == ["c", "b", "a"]

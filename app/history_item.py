"""The history row of a job that ended, in the protocol's form. Pure."""

from __future__ import annotations

import time
from typing import Any

from app import job_summary
from app.backlog import StoredPrompt
from app.events import ExecutionError
from app.graph.complaints import type_name
from app.graph.report import Outcome
from app.history import HistoryRow
from app.queue import Job
from app.wire import error_data


def history_row(job: Job | StoredPrompt, outcome: Outcome) -> HistoryRow:
    item = {
        "prompt": job.as_json(),
        "outputs": outcome.outputs,
        "status": outcome.history_status(),
        "meta": outcome.meta,
    }
    summary = job_summary.from_history(item)
    return HistoryRow(job.id, summary["status"], summary, item)


def crashed(job: Job, error: Exception) -> tuple[ExecutionError, Outcome]:
    """For a job that ended outside its nodes: what its client and its history should say."""
    return _failed(job, type_name(error), f"The server failed outside the nodes: {error}\n")


def not_run(stored: StoredPrompt, reason: str) -> tuple[ExecutionError, Outcome]:
    """For a prompt of an earlier process that this one does not run."""
    return _failed(stored, "PromptGivenUp", f"{reason}\n")


def _failed(job: Job | StoredPrompt, type: str, message: str) -> tuple[ExecutionError, Outcome]:
    event = ExecutionError(
        prompt_id=job.id,
        client_id=job.client_id,
        node_id="",
        node_type="",
        executed=(),
        exception_message=message,
        exception_type=type,
        traceback=(),
        current_inputs={},
        current_outputs=(),
    )
    data: dict[str, Any] = {**error_data(event), "timestamp": time.time_ns() // 1_000_000}
    return event, Outcome("error", {}, {}, (("execution_error", data),))

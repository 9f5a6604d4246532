"""Figures of the language runtime under the names that SGLang's dashboards ask for, without a prefix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from runtime.llm.api import LanguageRuntime
    from runtime.llm.stopwatch import Span

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3, 6, 12, 30, 60, 120)
_SPANS: dict[Span, tuple[str, str]] = {
    "queue": ("queue_time_seconds", "From a question to the start of its work"),
    "prefill": ("prefill_time", "Seconds for encoding media and computing a prompt, up to the first token"),
    "first_token": ("time_to_first_token_seconds", "From a question to the first token of its answer"),
    "between_tokens": ("inter_token_latency_seconds", "From one token of an answer to the next"),
    "whole": ("e2e_request_latency_seconds", "From a question to the end of its answer"),
}


class LanguageTimes:
    """Told by the runtime's threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._histograms = {
            span: Histogram(name, text, buckets=_SECONDS, registry=registry)
            for span, (name, text) in _SPANS.items()
        }

    def observe(self, span: Span, seconds: float) -> None:
        self._histograms[span].observe(seconds)


class LanguageFigures(Collector):
    """Read from the runtime when somebody asks. Models that are not loaded have none."""

    def __init__(self, runtime: LanguageRuntime) -> None:
        self._runtime = runtime

    def collect(self) -> Iterator[Metric]:
        models = self._runtime.stats()
        rates = {
            name: stats.cached_tokens / stats.prompt_tokens
            for name, stats in models.items()
            if stats.prompt_tokens
        }
        yield _gauge("cache_hit_rate", "Share of prompt tokens whose pages were already filled", rates)
        running = {name: stats.running for name, stats in models.items()}
        yield _gauge("num_running_reqs", "Requests that compute", running)
        waiting = {name: stats.waiting for name, stats in models.items()}
        yield _gauge("num_queue_reqs", "Requests that wait for a place", waiting)
        usage = {
            name: stats.pages_used / total
            for name, stats in models.items()
            if (total := stats.pages_free + stats.pages_cached + stats.pages_used)
        }
        yield _gauge("token_usage", "Share of pages that running requests hold", usage)
        for field, name, text in (
            ("prompt_tokens", "prompt_tokens", "Tokens of prompts"),
            ("cached_tokens", "cached_tokens", "Tokens of prompts whose pages were already filled"),
            ("generated_tokens", "generation_tokens", "Tokens of answers"),
            ("media_encoded", "media_encoded", "Images, videos and sounds that were encoded"),
            ("media_reused", "media_reused", "Images, videos and sounds whose features were kept"),
        ):
            counter = CounterMetricFamily(name, text, labels=("model_name",))
            for model, stats in models.items():
                counter.add_metric((model,), getattr(stats, field))
            yield counter


def _gauge(name: str, text: str, values: dict[str, float] | dict[str, int]) -> Metric:
    gauge = GaugeMetricFamily(name, text, labels=("model_name",))
    for model, value in values.items():
        gauge.add_metric((model,), value)
    return gauge

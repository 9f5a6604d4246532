"""Figures about the running server in Prometheus' text form. Engines report here; it decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.language_metrics import LanguageFigures, LanguageTimes

if TYPE_CHECKING:
    from app.startup import Studio

_ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)


class Metrics:
    def __init__(self, queue_length: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._diffusion_rows = self._rows(
            "diffusion", "Requests that shared one pass through a denoising network"
        )
        self._llm_rows = self._rows("llm", "Requests that shared one pass through a language model")
        self._diffusion_forwards = self._counter("diffusion_forwards", "Passes through denoising networks")
        self._llm_forwards = self._counter("llm_forwards", "Passes through language models")
        self._prompts = self._counter("prompts", "Prompts that ended, by outcome", ("outcome",))
        self._seconds = Histogram(
            "treadle_prompt_seconds", "From start to end of a prompt", registry=self._registry
        )
        self.llm_times = LanguageTimes(self._registry)
        queue = Gauge("treadle_queue_length", "Prompts that wait or run", registry=self._registry)
        queue.set_function(queue_length)

    def diffusion_forward(self, rows: int) -> None:
        self._diffusion_forwards.inc()
        self._diffusion_rows.observe(rows)

    def llm_forward(self, rows: int) -> None:
        self._llm_forwards.inc()
        self._llm_rows.observe(rows)

    def prompt_ended(self, outcome: str, seconds: float) -> None:
        self._prompts.labels(outcome).inc()
        self._seconds.observe(seconds)

    def watched(self, studio: Studio) -> Studio:
        """Reuse is counted by the runtimes themselves, so it is read when somebody asks."""
        self._registry.register(_Reuse(studio))
        self._registry.register(LanguageFigures(studio.llm))
        return studio

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def _rows(self, runtime: str, text: str) -> Histogram:
        name = f"treadle_{runtime}_rows_per_forward"
        return Histogram(name, text, buckets=_ROWS, registry=self._registry)

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(f"treadle_{name}", text, labels, registry=self._registry)


class _Reuse(Collector):
    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    def collect(self) -> Iterator[Metric]:
        models = self._studio.llm.stats()
        text = "Memory that language models hold"
        held = GaugeMetricFamily("treadle_llm_bytes", text, labels=("model", "kind"))
        for name, stats in models.items():
            held.add_metric((name, "weights"), stats.weight_bytes)
            held.add_metric((name, "pages"), stats.page_bytes)
        yield held
        reused = sum(stats.cached_tokens for stats in models.values())
        text = "Prompt tokens whose pages were already filled"
        yield CounterMetricFamily("treadle_llm_prefix_tokens_reused", text, reused)
        text = "Tokens that were guessed from what was said before"
        guesses = CounterMetricFamily("treadle_llm_guesses", text, labels=("outcome",))
        num_right = sum(stats.guesses_accepted for stats in models.values())
        guesses.add_metric(("right",), num_right)
        guesses.add_metric(("wrong",), sum(stats.guesses_proposed for stats in models.values()) - num_right)
        yield guesses
        hits = self._studio.diffusion.stats().conditioning_hits
        text = "Texts that needed no encoding because their conditioning was kept"
        yield CounterMetricFamily("treadle_conditioning_cache_hits", text, hits)

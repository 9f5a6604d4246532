"""Runs programs: the turns of each one after the other, branches and other programs beside it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event
from typing import Any, Concatenate, Generic, ParamSpec

from programs.turns import Answer, Backend, Gap, Turn
from runtime.platform.handle import Cancelled

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Piece:
    """A bit of the answer called `name`, as it came."""

    name: str
    text: str


class State:
    """A conversation. `+=` adds a turn and returns at once; reading an answer waits for it.

    `value` is what the program returned.
    """

    def __init__(self, backend: Backend, hear: Callable[[Piece], None]) -> None:
        self.value: Any = None
        self._backend = backend
        self._hear = hear
        self._turns: list[Turn] = []
        self._answers: dict[str, Future[Answer]] = {}
        self._branches: list[State] = []
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="program")
        self._last: Future[None] = Future()
        self._last.set_result(None)

    def __iadd__(self, turn: Turn) -> State:
        if not isinstance(turn, Turn):
            raise TypeError("a program adds turns: system(...), user(...) or assistant(...)")
        for gap in _gaps(turn):
            if gap.name in self._answers:
                raise ValueError(f"there is an answer called {gap.name} already")
            self._answers[gap.name] = Future()
        self._last = self._worker.submit(self._take, self._last, turn)
        return self

    def __getitem__(self, name: str) -> str:
        return self.answer(name).text

    def answer(self, name: str) -> Answer:
        """Raises what went wrong on the way to it."""
        return self._answers[name].result()

    def fork(self, count: int) -> list[State]:
        """Branches that go on from here beside one another; what came before is computed once."""
        self._last.result()
        branches = [State(self._backend, self._hear) for _ in range(count)]
        for branch in branches:
            branch._turns += self._turns
            branch._answers |= self._answers
        self._branches += branches
        return branches

    def finish(self) -> None:
        """Waits for every turn, those of branches too; raises the first error among them."""
        self._worker.shutdown()
        for branch in self._branches:
            branch.finish()
        self._last.result()

    def _take(self, before: Future[None], turn: Turn) -> None:
        try:
            before.result()
            self._turns.append(Turn(turn.role, ()))
            for part in turn.parts:
                said = self._fill(part) if isinstance(part, Gap) else part
                self._turns[-1] = Turn(turn.role, (*self._turns[-1].parts, said))
        except BaseException as error:
            for gap in _gaps(turn):
                if not self._answers[gap.name].done():
                    self._answers[gap.name].set_exception(error)
            raise

    def _fill(self, gap: Gap) -> str:
        turns = [turn for turn in self._turns if turn.parts]
        answer = self._backend.generate(turns, gap, lambda text: self._hear(Piece(gap.name, text)))
        self._answers[gap.name].set_result(answer)
        return answer.text


def _gaps(turn: Turn) -> list[Gap]:
    return [part for part in turn.parts if isinstance(part, Gap)]


class Program(Generic[P]):
    """Made of a function by `function`; its first argument, the state, is given by `run`."""

    def __init__(self, body: Callable[Concatenate[State, P], Any]) -> None:
        self._body = body

    def run(self, backend: Backend, *args: P.args, **kwargs: P.kwargs) -> State:
        """Blocks until the end; raises the program's error."""
        return self._run(State(backend, lambda _: None), *args, **kwargs)

    def run_batch(self, backend: Backend, arguments: Sequence[Mapping[str, Any]]) -> list[State]:
        """A run for each mapping, in their order; when all have ended, raises the first error."""
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="programs") as pool:
            runs = [pool.submit(self.run, backend, **each) for each in arguments]  # type: ignore[call-arg]
        return [run.result() for run in runs]

    def stream(self, backend: Backend, *args: P.args, **kwargs: P.kwargs) -> Generator[Piece, None, State]:
        """The pieces of all answers as they come, and the state as what it returns. Closing it ends the
        program.
        """
        pieces: SimpleQueue[Piece | None] = SimpleQueue()
        is_closed = Event()

        def hear(piece: Piece) -> None:
            if is_closed.is_set():
                raise Cancelled("nobody listens to the program any more")
            pieces.put(piece)

        with ThreadPoolExecutor(1, thread_name_prefix="programs") as pool:
            run = pool.submit(self._run, State(backend, hear), *args, **kwargs)
            run.add_done_callback(lambda _: pieces.put(None))
            try:
                while (piece := pieces.get()) is not None:
                    yield piece
            finally:
                is_closed.set()
        return run.result()

    def _run(self, state: State, *args: P.args, **kwargs: P.kwargs) -> State:
        try:
            state.value = self._body(state, *args, **kwargs)
        finally:
            state.finish()
        return state


_AT_ONCE = 32


def function(body: Callable[Concatenate[State, P], Any]) -> Program[P]:
    return Program(body)

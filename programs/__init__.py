"""Programs that talk with a language model; docs/programs.md shows how one is written."""

from programs.backends import EngineBackend, HttpBackend
from programs.program import Piece, Program, State, function
from programs.turns import Answer, assistant, gen, image, select, system, user

__all__ = ["Answer", "EngineBackend", "HttpBackend", "Piece", "Program", "State", "assistant", "function"]
__all__ += ["gen", "image", "select", "system", "user"]

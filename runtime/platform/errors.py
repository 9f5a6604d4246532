"""What a runtime says when it cannot do what was asked; app/errors.py maps these to each protocol's form.

RuntimeFault
  Unsupported   the input is valid but this runtime cannot serve it; the message names what is supported
  MissingFile   a model or one of its parts is not on disk
  Unreachable   another process that is needed does not answer
  OutOfMemory   the smallest possible batch of the request does not fit; the message names its size
"""


class RuntimeFault(Exception):
    """Base of the faults that a user can do something about."""


class Unsupported(RuntimeFault):
    pass


class MissingFile(RuntimeFault):
    pass


class Unreachable(RuntimeFault):
    pass


class OutOfMemory(RuntimeFault):
    pass

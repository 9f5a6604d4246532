"""`comfy.options`: the command line is parsed by this program's main.py."""


def enable_args_parsing(enable: bool = True) -> None:
    pass

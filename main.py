"""The command line: serve, `run` or `convert` a workflow, or list `models`. Flags come before torch."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "kernels"))

from app.config import BadConfig
from app.flags import parse, set_environment


def main(argv: list[str]) -> int:
    command, *rest = argv or [""]
    try:
        if command == "run":
            from app.cli.run import main as run

            return run(rest)
        if command == "convert":
            from app.cli.convert import main as convert

            return convert(rest)
        if command == "models":
            from app.cli.models import main as models

            return models(rest)
        return serve(argv)
    except BadConfig as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def serve(argv: list[str]) -> int:
    set_environment(argv)
    config = parse(argv)
    logging.basicConfig(level=config.log_level, format="%(message)s")
    if config.ignored_flags:
        logging.info("accepted and ignored: %s", " ".join(config.ignored_flags))
    if config.encoder_only is not None:
        from app.encoder_server import run_encoder

        return run_encoder(config)
    from app.serve import run_server

    return run_server(config)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    # packs replace sys.stdout, with None too
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.flush()
    # a node's thread that heeds no stop signal, or a half-done import, would keep the process alive
    os._exit(status)

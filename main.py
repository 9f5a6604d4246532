"""The command line: serve, or `run` a workflow, or list `models`. Flags come before torch."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "kernels"))

from app.flags import parse, set_environment


def main(argv: list[str]) -> int:
    command = argv[0] if argv else ""
    if command == "run":
        from app.cli.run import main as run

        return run(argv[1:])
    if command == "models":
        from app.cli.models import main as models

        return models(argv[1:])
    return serve(argv)


def serve(argv: list[str]) -> int:
    set_environment(argv)
    config = parse(argv)
    logging.basicConfig(level=config.log_level, format="%(message)s")
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    if config.ignored_flags:
        logging.info("accepted and ignored: %s", " ".join(config.ignored_flags))
    from app.serve import run_server

    return run_server(config)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

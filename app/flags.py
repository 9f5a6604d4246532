"""Command line to Config. Names and meanings are ComfyUI's, so that launchers work; it imports no torch."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from app import launch_flags, writing_flags
from app.config import PORT, PROJECT, BadConfig, Config, Directories

EVERY_ADDRESS = "0.0.0.0,::"

# Accepted because launchers pass them blindly: this program decides the matter itself, or has no such part.
_IGNORED_SWITCHES = """
    --gpu-only --highvram --normalvram --lowvram --novram --disable-smart-memory --disable-async-offload
    --disable-dynamic-vram --enable-dynamic-vram --disable-pinned-memory --fast-disk
    --disable-nvml-pressure --force-non-blocking --mmap-torch-files --disable-mmap --disable-cuda-graphs
    --cuda-malloc --disable-cuda-malloc --supports-fp8-compute --enable-triton-backend
    --disable-triton-backend --force-fp32 --force-fp16 --fp32-unet --fp64-unet --bf16-unet --fp16-unet
    --fp8_e4m3fn-unet --fp8_e5m2-unet --fp8_e8m0fnu-unet --fp16-vae --fp32-vae --bf16-vae --cpu-vae
    --fp8_e4m3fn-text-enc --fp8_e5m2-text-enc --fp16-text-enc --fp32-text-enc --bf16-text-enc
    --fp16-intermediates --force-channels-last --deterministic --use-split-cross-attention
    --use-quad-cross-attention --use-pytorch-cross-attention --use-sage-attention --use-flash-attention
    --use-ck-attention --disable-xformers --force-upcast-attention --dont-upcast-attention
    --disable-api-nodes --disable-partner-nodes --offline --enable-manager --disable-manager-ui
    --enable-manager-legacy-ui --disable-assets
    --list-feature-flags --dont-print-server --log-stdout --debug-hang --disable-auto-launch
"""
_IGNORED_WITH_VALUES = """
    --reserve-vram --vram-headroom --async-offload --default-device --directml --oneapi-device-selector
    --fast --cache-ram --preview-method --preview-size --default-hashing-function
    --front-end-version --database-url --feature-flag --comfy-api-base --disabled-nodes-config
"""


def parse(argv: Sequence[str]) -> Config:
    parsed = _parser().parse_args(list(argv))
    base = parsed.base_directory or PROJECT
    config = Config(
        directories=_directories(base, parsed),
        listen=tuple(
            dict.fromkeys(address.strip() for address in parsed.listen.split(",") if address.strip())
        ),
        port=PORT if parsed.port is None else parsed.port,
        tls_certificate=parsed.tls_certfile,
        tls_key=parsed.tls_keyfile,
        cors_origin=parsed.enable_cors_header,
        max_upload_mb=parsed.max_upload_size,
        compress_bodies=parsed.enable_compress_response_body,
        open_browser=parsed.open or parsed.windows_standalone_build,
        quick_test=parsed.quick_test_for_ci,
        multi_user=parsed.multi_user,
        device="cpu" if parsed.cpu else None,
        custom_model_runner=_runner(parsed.custom_model_runner),
        encoder_only=_encoder_model(parsed),
        encoder_url=parsed.encoder_url,
        extra_model_paths=_extra_model_paths(base, parsed.extra_model_paths_config),
        max_running_jobs=parsed.max_running_jobs,
        mem_fraction_static=parsed.mem_fraction_static,
        prefix_cache=not parsed.disable_radix_cache,
        writing=writing_flags.read(parsed),
        empty_queue=parsed.empty_queue,
        cache_mb=0 if parsed.cache_none else parsed.cache_mb,
        cache_entries=parsed.cache_lru or None,
        cache_keeps="nothing" if parsed.cache_none else "last" if parsed.cache_classic else "all",
        custom_nodes=not parsed.disable_all_custom_nodes,
        whitelisted_packs=tuple(parsed.whitelist_custom_nodes),
        metadata=not parsed.disable_metadata,
        assets=parsed.enable_assets,
        asset_hashing=parsed.enable_asset_hashing,
        remote_media=parsed.allow_remote_media,
        log_level=_log_level(parsed.verbose),
        ignored_flags=tuple(sorted(_given_but_ignored(argv))),
        argv=tuple(argv),
    )
    if "--disable-auto-launch" in argv:
        config = replace(config, open_browser=False)
    config = launch_flags.follow(parsed, config)
    return replace(config, web_root=_web_root(parsed, config.web_root))


def _web_root(parsed: argparse.Namespace, ours: Path) -> Path:
    """ComfyUI's own editor is served from its wheel when the user has installed that."""
    if parsed.front_end_root is not None:
        return Path(parsed.front_end_root)
    if parsed.front_end == "treadle":
        return ours
    package = find_spec("comfyui_frontend_package")
    if package is None or package.origin is None:
        raise BadConfig("--front-end official needs the package: pip install comfyui-frontend-package")
    return Path(package.origin).parent / "static"


def set_environment(argv: Sequence[str]) -> None:
    """What torch reads when it is imported; so this runs before anything can import it."""
    parsed, _ = _parser().parse_known_args(list(argv))
    if parsed.cpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    elif parsed.cuda_device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = parsed.cuda_device
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="main.py",
        description="Serve the node-graph studio. Other commands: run, convert, models (main.py COMMAND).",
        allow_abbrev=False,
    )
    network = parser.add_argument_group("network")
    network.add_argument("--listen", nargs="?", const=EVERY_ADDRESS, default="127.0.0.1", metavar="IP[,IP]")
    network.add_argument("--port", type=int, help=f"{PORT} by default")
    network.add_argument("--tls-keyfile", type=Path)
    network.add_argument("--tls-certfile", type=Path)
    network.add_argument("--enable-cors-header", nargs="?", const="*", metavar="ORIGIN")
    network.add_argument("--max-upload-size", type=float, default=100, metavar="MB")
    network.add_argument("--enable-compress-response-body", action="store_true")
    add_directory_flags(parser)
    start = parser.add_argument_group("start")
    start.add_argument("--open", "--auto-launch", dest="open", action="store_true", help="open a browser")
    start.add_argument("--windows-standalone-build", action="store_true")
    start.add_argument("--quick-test-for-ci", action="store_true", help="load everything, then exit")
    start.add_argument("--verbose", nargs="*", default=["INFO"], metavar="LEVEL")
    work = parser.add_argument_group("work")
    work.add_argument("--cpu", action="store_true", help="use no accelerator")
    work.add_argument("--cuda-device", metavar="IDS")
    work.add_argument(
        "--custom-model-runner",
        metavar="FILE.py:CLASS",
        help="let a class of your own compute every forward of language models; the file is code and runs",
    )
    work.add_argument(
        "--encoder-only",
        action="store_true",
        help="serve only what turns images, video and sound into features, of the language model --model",
    )
    work.add_argument("--model", metavar="NAME", help="the language model of --encoder-only")
    work.add_argument(
        "--encoder-url",
        type=_http_url,
        metavar="URL",
        help="let a process with --encoder-only encode images, video and sound, and load no encoder here",
    )
    work.add_argument(
        "--max-running-jobs", type=_positive, default=8, metavar="N", help="1 gives strict order"
    )
    work.add_argument(
        "--mem-fraction-static",
        type=_share,
        metavar="F",
        help="share of all memory for weights and pages of language models together (pages get a quarter of"
        " what is free if not given)",
    )
    work.add_argument(
        "--disable-radix-cache",
        action="store_true",
        help="compute every prompt of a language model whole, whatever was computed before",
    )
    work.add_argument(
        "--empty-queue", action="store_true", help="forget the prompts that an earlier run left unfinished"
    )
    work.add_argument("--cache-mb", type=int, default=2048, help="size of the node output cache")
    kept = work.add_mutually_exclusive_group()
    kept.add_argument("--cache-none", action="store_true", help="compute every node of every prompt")
    kept.add_argument("--cache-classic", "--high-ram", action="store_true", help="keep the last prompt's")
    kept.add_argument("--cache-lru", type=int, default=0, metavar="N", help="keep at most N nodes' outputs")
    work.add_argument("--disable-metadata", action="store_true", help="write no workflow into files")
    work.add_argument("--disable-all-custom-nodes", action="store_true")
    work.add_argument("--whitelist-custom-nodes", nargs="+", default=[], metavar="PACK")
    network.add_argument(
        "--allow-remote-media",
        nargs="?",
        choices=["none", "public", "any"],
        const="public",
        default="none",
        help="let API clients name media by http(s) addresses; 'any' includes those of private networks",
    )
    writing_flags.add(parser)
    launch_flags.add(parser)
    users = parser.add_argument_group("users and editor")
    users.add_argument("--multi-user", action="store_true")
    users.add_argument("--enable-assets", action="store_true", help="keep files as assets, at /api/assets")
    users.add_argument(
        "--enable-asset-hashing", action="store_true", help="read every file whole, to know equal ones"
    )
    users.add_argument("--front-end", choices=["treadle", "official"], default="treadle")
    users.add_argument("--front-end-root", type=Path, metavar="D")
    for flag in _IGNORED_SWITCHES.split():
        parser.add_argument(flag, action="store_true", help=argparse.SUPPRESS)
    for flag in _IGNORED_WITH_VALUES.split():
        parser.add_argument(flag, nargs="*", help=argparse.SUPPRESS)
    return parser


def add_directory_flags(parser: argparse.ArgumentParser) -> None:
    """Shared by the server and the other commands."""
    group = parser.add_argument_group("directories")
    for name in ("base", "models", "output", "input", "temp", "user"):
        group.add_argument(f"--{name}-directory", type=Path, metavar="D")
    group.add_argument(
        "--extra-model-paths-config", type=Path, nargs="+", action="append", default=[], metavar="F"
    )


def headless_config(parsed: argparse.Namespace) -> Config:
    """For a command that has only the directory flags."""
    base = parsed.base_directory or PROJECT
    return Config(
        directories=_directories(base, parsed),
        extra_model_paths=_extra_model_paths(base, parsed.extra_model_paths_config),
    )


def _directories(base: Path, parsed: argparse.Namespace) -> Directories:
    directories = Directories.below(base.expanduser().resolve())
    given = {
        name: path.expanduser().resolve()
        for name in ("models", "output", "input", "user")
        if (path := getattr(parsed, f"{name}_directory")) is not None
    }
    if parsed.temp_directory is not None:
        given["temp"] = parsed.temp_directory.expanduser().resolve() / "temp"
    return replace(directories, **given)


def _extra_model_paths(base: Path, given: list[list[Path]]) -> tuple[Path, ...]:
    beside_the_program = base / "extra_model_paths.yaml"
    named = [path.resolve() for group in given for path in group]
    return tuple(([beside_the_program] if beside_the_program.is_file() else []) + named)


def _given_but_ignored(argv: Sequence[str]) -> set[str]:
    silent = {"--disable-auto-launch"}
    flags = {argument.split("=", 1)[0] for argument in argv if argument.startswith("--")}
    return flags & ({*_IGNORED_SWITCHES.split(), *_IGNORED_WITH_VALUES.split()} - silent)


def _runner(named: str | None) -> str | None:
    """What can be said before anything is loaded; the class itself is looked for then."""
    if named is not None and not Path(named.rpartition(":")[0]).is_file():
        raise BadConfig(
            f"--custom-model-runner {named}: there is no such file; it is written as file.py:Class"
        )
    return named


def _encoder_model(parsed: argparse.Namespace) -> str | None:
    name: str | None = parsed.model
    if parsed.encoder_only == (name is None):
        raise BadConfig("--encoder-only and --model NAME need one another")
    if parsed.encoder_only and parsed.encoder_url is not None:
        raise BadConfig("--encoder-only and --encoder-url exclude each other")
    return name


def _http_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise argparse.ArgumentTypeError(f"{text} is no address such as http://127.0.0.1:8190")
    return text


def _log_level(words: list[str]) -> str:
    # "--verbose" alone asks for everything; a second word named a log file in ComfyUI
    level = words[0].upper() if words else "DEBUG"
    return level if level in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL") else "DEBUG"


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value

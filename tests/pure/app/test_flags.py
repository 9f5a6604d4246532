import os
from pathlib import Path

import pytest

from app.config import BadConfig, Writing
from app.flags import parse, set_environment


def test_the_defaults_are_a_local_server() -> None:
    config = parse([])
    assert (config.listen, config.port, config.max_running_jobs) == (("127.0.0.1",), 8188, 8)
    assert not config.open_browser
    assert config.mem_fraction_static is None
    assert config.prefix_cache
    assert not parse(["--disable-radix-cache"]).prefix_cache
    assert parse(["--mem-fraction-static", "0.85"]).mem_fraction_static == 0.85


def test_language_models_guess_and_fill_blocks_as_flags_say(tmp_path: Path) -> None:
    assert parse([]).writing == Writing()
    flags = "--speculative-algorithm NGRAM --speculative-num-draft-tokens 4 --dllm-algorithm joint_threshold"
    settings = tmp_path / "settings.yaml"
    settings.write_text("threshold: 0.5\nmax_checks: 2\n")
    writing = parse([*flags.split(), "--dllm-algorithm-config", str(settings)]).writing
    found = (("threshold", 0.5), ("max_checks", 2))
    assert writing == Writing("NGRAM", 4, "joint_threshold", found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("edit_threshold: 0.5", "no setting 'edit_threshold'"),
        ("threshold: yes", "must map settings to numbers"),
        ("[1, 2]", "must map settings to numbers"),
        ("{", "while parsing"),
    ],
)
def test_settings_of_an_algorithm_that_cannot_be_followed_are_named(
    text: str, words: str, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(text)
    with pytest.raises(BadConfig, match=words):
        parse(["--dllm-algorithm-config", str(settings)])


def test_a_process_is_an_encoder_or_has_one_elsewhere() -> None:
    assert (parse([]).encoder_only, parse([]).encoder_url) == (None, None)
    assert parse(["--encoder-only", "--model", "llava"]).encoder_only == "llava"
    assert parse(["--encoder-url", "http://host:8190"]).encoder_url == "http://host:8190"
    for flags in (["--encoder-only"], ["--model", "llava"]):
        with pytest.raises(BadConfig, match="need one another"):
            parse(flags)
    with pytest.raises(BadConfig, match="exclude each other"):
        parse(["--encoder-only", "--model", "llava", "--encoder-url", "http://host:8190"])


def test_the_address_of_an_encoder_is_one_of_http(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--encoder-url", "host:8190"])
    assert "host:8190 is no address such as http://127.0.0.1:8190" in capsys.readouterr().err


def test_a_bare_listen_means_every_address() -> None:
    assert parse(["--listen"]).listen == ("0.0.0.0", "::")
    assert parse(["--listen", "10.0.0.1,10.0.0.2", "--port", "9"]).listen == ("10.0.0.1", "10.0.0.2")


def test_directories_follow_the_base_unless_they_are_named(tmp_path: Path) -> None:
    output, temp = tmp_path / "out", tmp_path / "t"
    flags = [
        "--base-directory",
        str(tmp_path),
        "--output-directory",
        str(output),
        "--temp-directory",
        str(temp),
    ]
    directories = parse(flags).directories
    assert directories.models == tmp_path / "models"
    assert directories.output == output
    assert directories.temp == temp / "temp"


def test_tuning_flags_of_launchers_are_accepted_and_reported() -> None:
    given = ["--lowvram", "--reserve-vram", "2", "--fast", "fp16_accumulation", "--cpu"]
    config = parse(given)
    assert config.ignored_flags == ("--fast", "--lowvram", "--reserve-vram")
    assert config.device == "cpu"


def test_assets_are_kept_when_asked() -> None:
    plain, kept = (
        parse([]),
        parse(["--enable-assets", "--enable-asset-hashing", "--database-url=sqlite:///x"]),
    )
    assert (plain.assets, kept.assets, kept.asset_hashing) == (False, True, True)
    assert kept.ignored_flags == ("--database-url",)


def test_one_flag_says_which_results_are_kept() -> None:
    kept = [(config.cache_keeps, config.cache_entries) for config in map(parse, CACHE_FLAGS)]
    assert kept == [("all", None), ("last", None), ("all", 100), ("nothing", None)]
    with pytest.raises(SystemExit):
        parse(["--cache-none", "--cache-classic"])


CACHE_FLAGS = [[], ["--cache-classic"], ["--cache-lru", "100"], ["--cache-none"]]


def test_the_browser_opens_when_asked_and_not_when_forbidden() -> None:
    assert parse(["--open"]).open_browser
    assert parse(["--auto-launch"]).open_browser
    assert not parse(["--auto-launch", "--disable-auto-launch"]).open_browser


def test_an_unknown_flag_ends_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--lissten"])
    assert ended.value.code == 2
    assert "--lissten" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong", [["--max-running-jobs", "0"], ["--port", "abc"], ["--mem-fraction-static", "1.5"]]
)
def test_wrong_values_end_the_program(wrong: list[str]) -> None:
    with pytest.raises(SystemExit):
        parse(wrong)


def test_extra_paths_may_be_given_often(tmp_path: Path) -> None:
    flags = ["--base-directory", str(tmp_path), "--extra-model-paths-config", "a", "b"]
    names = [path.name for path in parse([*flags, "--extra-model-paths-config", "c"]).extra_model_paths]
    assert names == ["a", "b", "c"]


def test_the_processor_alone_is_chosen_before_torch_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    set_environment(["--cpu"])
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_a_custom_runner_names_a_file_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("")
    assert parse(["--custom-model-runner", f"{file}:Mine"]).custom_model_runner == f"{file}:Mine"
    for named in (f"{tmp_path / 'gone.py'}:Mine", "Mine"):
        with pytest.raises(BadConfig, match=r"file\.py:Class"):
            parse(["--custom-model-runner", named])


def test_a_server_starts_as_servers_of_language_models_do(tmp_path: Path) -> None:
    config = parse(["--model-path", str(tmp_path), "--tp-size", "1", "--log-level", "warning"])
    assert (config.port, config.log_level) == (30000, "WARNING")
    assert config.directories.language_model == tmp_path
    named = parse(["--model-path", str(tmp_path), "--host", "0.0.0.0", "--port", "8000"])
    assert (named.port, named.listen) == (8000, ("0.0.0.0",))
    with pytest.raises(BadConfig, match="one device"):
        parse(["--tp-size", "2"])
    with pytest.raises(BadConfig, match="no such file"):
        parse(["--model-path", str(tmp_path / "missing")])

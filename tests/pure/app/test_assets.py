import io
from dataclasses import replace
from pathlib import Path

import pytest

from app.assets.blake3 import content_hash
from app.assets.catalog import Catalog
from app.assets.filters import Filters, InvalidCursor, Window
from app.assets.places import NoDestination, Places
from app.assets.rows import FileFacts, Named
from app.config import Directories
from app.database import Database
from app.events import Event, PackMessage
from app.files import Files
from app.folders import ModelFolders

# of the bytes 0, 1 ... 250, 0, 1 ... as long as the first number says; published with the algorithm
VECTORS = {
    0: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    1: "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
    1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
    1025: "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
    102400: "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085",
}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    directories = replace(Directories.below(tmp_path), embedded_models=tmp_path / "models")
    files = Files(directories, ModelFolders(directories))
    files.make_directories()
    (directories.models / "checkpoints").mkdir(parents=True)
    return files


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
async def catalog(tmp_path: Path, files: Files, events: list[Event]):  # type: ignore[no-untyped-def]
    database = Database(tmp_path / "treadle.sqlite")
    await database.open()
    catalog = Catalog(database, files, events.append, hashes=False)
    yield catalog
    await catalog.close()
    await database.close()


async def scanned(catalog: Catalog) -> None:
    catalog.scan.begin(("input", "models", "output"))
    await catalog.scan.ended()


async def names(catalog: Catalog, **asked: object) -> list[str]:
    filters = replace(Filters(owner=""), **asked)  # type: ignore[arg-type]
    return [
        asset.name
        for asset in (await catalog.assets.listed(filters, Window(sort="name", descending=False))).assets
    ]


@pytest.mark.parametrize("length", VECTORS)
def test_hashes_are_those_of_the_published_vectors(length: int) -> None:
    data = (bytes(range(251)) * (length // 251 + 1))[:length]
    assert content_hash(io.BytesIO(data)) == f"blake3:{VECTORS[length]}"


def test_a_stream_of_several_segments_is_one_tree() -> None:
    """The vector is the reference implementation's, of 9 MiB and 5 bytes."""
    data = (bytes(range(251)) * (9 * 2**20 // 251 + 1))[: 9 * 2**20 + 5]
    assert (
        content_hash(io.BytesIO(data))
        == "blake3:e11450dc26fdc8b2c25371e1ba3938ff1251e865968608e20140add7c40a6fde"
    )


def test_a_place_says_how_a_file_is_tagged_loaded_and_shown(files: Files) -> None:
    places, directories = Places(files), files.directories
    picture = places.place(directories.output / "runs & takes" / "my shot.png")
    assert (picture.tags, picture.loader_path) == ({"output"}, "runs & takes/my shot.png")
    assert picture.view_url == "/api/view?type=output&filename=my%20shot.png&subfolder=runs%20%26%20takes"
    model = places.place(directories.models / "checkpoints" / "sub" / "a.safetensors")
    assert (model.tags, model.loader_path) == ({"models", "model_type:checkpoints"}, "sub/a.safetensors")
    assert (model.view_url, model.relative) == (None, "checkpoints/sub/a.safetensors")
    notes = places.place(directories.models / "checkpoints" / "notes.txt")
    assert (notes.tags, notes.loader_path) == ({"models"}, None)
    saved = places.place(directories.output / "checkpoints" / "b.safetensors")
    assert saved.tags == {"output", "models", "model_type:checkpoints"}
    assert "pasted" in places.place(directories.input / "pasted" / "a.png").tags
    assert "pasted" not in places.place(directories.input / "pasted" / "deep" / "a.png").tags
    elsewhere = places.place(Path("/elsewhere/a.png"))
    assert (elsewhere.kind, elsewhere.loader_path, elsewhere.tags) == (None, None, frozenset())


@pytest.mark.parametrize(
    "tags",
    [
        ["unknown"],
        ["input", "output"],
        ["models"],
        ["models", "model_type:absent"],
        ["models", "model_type:custom_nodes"],
        ["models", "model_type:vae", "model_type:loras"],
    ],
)
def test_tags_without_one_destination_are_refused(files: Files, tags: list[str]) -> None:
    with pytest.raises(NoDestination):
        Places(files).destination(tags)


def test_tags_name_the_destination(files: Files) -> None:
    places = Places(files)
    assert places.destination(["a", "input", ".."]) == files.directories.input
    assert places.destination(["models", "model_type:vae"]) == files.directories.models / "vae"


@pytest.mark.parametrize("text", ["", "x", "e30", "bnVsbA", "W10", "eyJzIjoibmFtZSJ9", "ü"])
def test_a_cursor_of_somebody_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor):
        Window(after=text).beyond()


def test_a_cursor_fits_only_its_own_order() -> None:
    by_name = Window(sort="name", descending=False)
    cursor = by_name.cursor("résumé", "an id")
    assert replace(by_name, after=cursor).beyond()[1] == ["résumé", "an id"]
    for other in (Window(sort="size"), Window(sort="name", descending=True)):
        with pytest.raises(InvalidCursor):
            replace(other, after=cursor).beyond()
    assert Window(sort="last_access_time").cursor(1, "an id") is None
    beyond_any_time = Window().cursor(10**21, "an id")
    with pytest.raises(InvalidCursor):
        Window(after=beyond_any_time).beyond()


async def test_a_scan_finds_files_and_loses_them_again(
    catalog: Catalog, files: Files, events: list[Event]
) -> None:
    (files.directories.input / "sub").mkdir()
    picture = files.directories.input / "sub" / "a.png"
    for path in (picture, files.directories.models / "checkpoints" / "b.safetensors"):
        path.write_bytes(b"content")
    (files.directories.input / ".hidden").write_bytes(b"content")
    (files.directories.input / "being_written").touch()
    await scanned(catalog)
    assert await names(catalog) == ["a.png", "b.safetensors"]
    assert await names(catalog, tags_all=("model_type:checkpoints",)) == ["b.safetensors"]
    said = [event.kind for event in events if isinstance(event, PackMessage)]
    words = ["started", "progress", "fast_complete", "enrich_complete", "completed"]
    assert said == [f"assets.seed.{word}" for word in words]
    picture.unlink()
    await scanned(catalog)
    assert await names(catalog) == ["b.safetensors"]


async def test_a_deleted_name_stays_hidden_until_its_file_changes(catalog: Catalog, files: Files) -> None:
    path = files.directories.input / "a.bin"
    path.write_bytes(b"one")
    await scanned(catalog)
    (asset,) = (await catalog.assets.listed(Filters(""), Window())).assets
    assert await catalog.assets.delete(asset.id, "")
    assert not await catalog.assets.delete(asset.id, "")
    await scanned(catalog)
    assert await names(catalog) == []
    path.write_bytes(b"another")
    await scanned(catalog)
    assert await names(catalog) == ["a.bin"]


async def test_a_changed_file_keeps_its_asset_with_what_people_said_of_it(
    catalog: Catalog, files: Files
) -> None:
    path = files.directories.input / "a.bin"
    path.write_bytes(b"one")
    await scanned(catalog)
    (asset,) = (await catalog.assets.listed(Filters(""), Window())).assets
    await catalog.tags.add(asset.id, "", ["mine"])
    path.write_bytes(b"longer")
    await scanned(catalog)
    (later,) = (await catalog.assets.listed(Filters("", tags_all=("mine",)), Window())).assets
    assert (later.id, later.size) == (asset.id, 6)


async def test_a_hashed_file_that_changes_becomes_another_content(catalog: Catalog, files: Files) -> None:
    first, _ = await catalog.upload(io.BytesIO(b"one"), "a.bin", Named("a.bin", ("input",)), None)
    assert first.path is not None
    Path(first.path).write_bytes(b"two!")
    await scanned(catalog)
    found = (await catalog.assets.listed(Filters(""), Window(sort="size", descending=False))).assets
    assert [(asset.size, "missing" in asset.tags) for asset in found] == [(3, True), (4, False)]
    assert found[0].hash != found[1].hash


async def test_names_of_a_content_are_found_again_wherever_it_comes_back(
    catalog: Catalog, files: Files
) -> None:
    first, _ = await catalog.upload(io.BytesIO(b"one"), "a.bin", Named("a.bin", ("input",)), None)
    assert first.path is not None
    Path(first.path).unlink()
    await scanned(catalog)
    assert await names(catalog, tags_all=("missing",)) == ["a.bin"]
    await catalog.upload(io.BytesIO(b"one"), "b.txt", Named("b.txt", ("output",)), None)
    assert await names(catalog, tags_all=("missing",)) == []
    assert await names(catalog, hash=first.hash) == ["a.bin", "b.txt"]


async def test_a_scan_that_hashes_knows_equal_files(tmp_path: Path, files: Files) -> None:
    for name in ("a.bin", "b.bin"):
        (files.directories.input / name).write_bytes(b"same")
    database = Database(tmp_path / "hashing.sqlite")
    await database.open()
    catalog = Catalog(database, files, lambda event: None, hashes=True)
    await scanned(catalog)
    found = (await catalog.assets.listed(Filters(""), Window())).assets
    assert {asset.hash for asset in found} == {content_hash(io.BytesIO(b"same"))}
    contents = await database.read(lambda c: c.execute("SELECT count(*) FROM content").fetchone())
    assert (len(found), contents) == (2, (1,))
    await database.close()


async def test_files_outside_every_folder_are_pruned(catalog: Catalog, tmp_path: Path) -> None:
    stray = tmp_path / "stray.bin"
    stray.write_bytes(b"content")
    await catalog.assets.add_file(FileFacts(str(stray), 7, 1), Named("stray.bin"))
    assert await catalog.scan.prune() == 1
    assert await names(catalog) == []


async def test_owners_see_their_own_and_everybodys(catalog: Catalog) -> None:
    await catalog.upload(io.BytesIO(b"one"), "a", Named("a", ("input",), owner="ann"), None)
    await catalog.upload(io.BytesIO(b"two"), "b", Named("b", ("input",)), None)
    assert await names(catalog, owner="ann") == ["a", "b"]
    assert await names(catalog, owner="bob") == ["b"]
    assert await names(catalog, owner="ann", with_public=False) == ["a"]

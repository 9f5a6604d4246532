"""Which glyphs there are to learn, and their names and keywords, read from the emojibase-data npm package."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

SMILEYS, ANIMALS, FOOD = 0, 3, 4  # emojibase's groups
FACES = """angry face|clown face|cold face|cowboy hat face|crying face|exploding head|face screaming in fear
face with medical mask|face with tears of joy|grinning face|hot face|kissing face|nauseated face|nerd face
neutral face|partying face|sleeping face|smiling face with heart-eyes|smiling face with hearts
smiling face with sunglasses|sneezing face|star-struck|thinking face|winking face|zany face
zipper-mouth face"""
OBJECTS = """airplane|alarm clock|alien|ambulance|american football|anchor|automobile|axe|backpack|balloon
baseball|basketball|bed|bell|bicycle|bomb|book|bowling|broom|bus|camera|candle|castle|chair|christmas tree
church|cloud|clown face|comet|computer mouse|couch and lamp|crayon|credit card|crescent moon|crown|door
dress|droplet|drum|envelope|fire|fire engine|full moon|game die|gear|gem stone|ghost|gift|glasses
glowing star|guitar|hammer|headphone|helicopter|high voltage|high-heeled shoe|hospital|hourglass done|house
jack-o-lantern|jeans|key|kite|laptop|light bulb|lipstick|locked|locomotive|magnet|microphone|microscope
mobile phone|money bag|motorcycle|mountain|musical note|necktie|newspaper|ogre|open book|package
paintbrush|party popper|pencil|pile of poo|police car|puzzle piece|rainbow|ring|robot|rocket|sailboat
saxophone|school|scissors|ship|shopping cart|shower|skull|snowflake|snowman|soap|soccer ball|star|sun
sunglasses|t-shirt|taxi|teddy bear|telephone|telescope|television|tennis|tent|toilet|top hat|tractor
trophy|trumpet|umbrella|violin|volcano|volleyball|watch|water wave|wrench|yo-yo"""
CHOSEN = frozenset(f"{FACES}|{OBJECTS}".replace("\n", "|").split("|"))


@dataclass(frozen=True, slots=True)
class Glyph:
    name: str
    emoji: str
    keywords: tuple[str, ...]


def read_emojibase(package: Path) -> list[Glyph]:
    """The glyphs worth learning: all animals and food, some faces and things, every heart."""
    entries = json.loads((package / "en" / "data.json").read_text(encoding="utf-8"))
    return [
        Glyph(entry["label"].translate({0x201C: None, 0x201D: None}), entry["emoji"], tuple(entry["tags"]))
        for entry in entries
        if _is_wanted(entry["label"], entry.get("group"))
    ]


def write_glyphs(glyphs: list[Glyph], path: Path) -> None:
    """One glyph a line, so that a change is readable."""
    lines = [json.dumps(asdict(glyph), ensure_ascii=False) for glyph in glyphs]
    path.write_text("[\n  " + ",\n  ".join(lines) + "\n]\n", encoding="utf-8")


def _is_wanted(name: str, group: int | None) -> bool:
    is_heart = group == SMILEYS and name.endswith(" heart")
    return group in (ANIMALS, FOOD) or is_heart or name in CHOSEN

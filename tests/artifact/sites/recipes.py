"""The recipes for sites, of the documentation and the builder, and what is read back from pages made with them."""

import json
import re
import shutil
import subprocess
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tests.kit.artifact import ROOT
from tests.kit.documentation import DOCS
from tests.rules.site.standard import judged

ADDRESS = "https://cards.example.com/"
KEY = "sk_..."
"""What the documentation writes for a server's address and a cards key."""

_RECIPE = re.compile(
    r"^\*\*([\w.]+)\.\*\* ([^\n]+)\n\n```[\w-]+\n(.*?)\n```$",
    re.DOTALL | re.MULTILINE,
)


class Recipe(NamedTuple):
    where: str
    text: str

    def written(self, *, behind):
        """The code in the sentence on where the recipe goes that follows these words."""
        return re.search(rf"{behind} `([^`]+)`", self.where)[1]


def documented_recipes():
    """By the name of the program."""
    return {
        name: Recipe(where, text)
        for name, where, text in _RECIPE.findall(DOCS["recipes"])
    }


_BUILDER = """
import { imageLines, cardUrl } from "./card.js";
import { RECIPES, siteOf } from "./recipes.js";
const [address, card, key] = JSON.parse(process.argv[2]);
const site = siteOf(address, card, key);
const recipes = Object.values(RECIPES).map(({ name, where, text }) => [name, [where, text(site)]]);
console.log(JSON.stringify([Object.fromEntries(recipes), imageLines(cardUrl(address, card, key), card)]));
"""


def builder_recipes(folder, card, key=KEY):
    """What the builder's own scripts give for this card: the recipes, and the lines for one page in HTML."""
    for name in ("card.js", "recipes.js"):
        shutil.copy(
            ROOT / "cardbeat" / "pages" / "builder" / name, folder
        )
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "print.js").write_text(_BUILDER)
    command = ["node", "print.js", json.dumps([ADDRESS, card, key])]
    ran = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    recipes, lines = json.loads(ran.stdout)
    return {
        name: Recipe(*recipe) for name, recipe in recipes.items()
    }, lines


def metas(html):
    """The metas of a page; each that is there must be there once."""
    _, _, found = judged(f"\ufeff{html}".encode(), scripting=True)
    found.pop("", None)  # that of a charset
    assert {*map(len, found.values())} <= {1}, html
    return {name: contents[0] for name, contents in found.items()}


def texts_of(url):
    """The query of a card's address, each name in it once, without those that have no value."""
    assert url.startswith(f"{ADDRESS}og?")
    pairs = parse_qsl(
        urlsplit(url).query, keep_blank_values=True, strict_parsing=True
    )
    assert len(dict(pairs)) == len(pairs), url
    return {name: value for name, value in pairs if value}

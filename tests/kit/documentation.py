"""The documentation as it stands: the README, the pages of `cardbeat/docs`, and the blocks of code in them."""

import re

from tests.kit.artifact import ROOT

FOLDER = ROOT / "cardbeat" / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted(FOLDER.glob("*.md"))
    if path.stem != "README"
}
"""The pages by name, without the one that lists them."""
PAGES = {
    "README": README,
    "index": (FOLDER / "README.md").read_text(encoding="utf-8"),
    **DOCS,
}

BLOCK = re.compile(r"^```([\w-]+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page, language):
    """The code in that language on a page, in its order."""
    return [
        code
        for found, code in BLOCK.findall(PAGES[page])
        if found == language
    ]


def example(name):
    """The text of a file that the documentation links, such as `nginx.conf`."""
    return (FOLDER / "files" / name).read_text(encoding="utf-8")


def block(page, language, text=""):
    """The first of these that holds a text."""
    return next(code for code in blocks(page, language) if text in code)

"""Replaces all font files, their index, their licences and their record."""

import tempfile
from pathlib import Path

from cardbeat.fonts.build import contrast, emoji, han, index, letters
from cardbeat.fonts.build.packages import Packages
from cardbeat.fonts.build.subsets import FOLDER


def main() -> None:
    for pattern in ("*.gz", "*.woff2", "*.json", "licences/*"):
        for old in FOLDER.glob(pattern):
            old.unlink()
    names = sorted({*letters.PACKAGES, *han.PACKAGES, *emoji.PACKAGES})
    with tempfile.TemporaryDirectory() as folder:
        packages = Packages(Path(folder), names)
        # The order in which a character is looked for.
        subsets = [
            *letters.serif(packages),
            *letters.inter(packages),
            *letters.inter_with_marks(packages),
            *letters.scripts(packages),
            *letters.rarer_letters(packages),
            *letters.math_marks(packages),
            *letters.symbols(packages),
            *han.subsets(packages, han.SERIF),
            *han.subsets(packages, han.SANS),
        ]
        pictures = list(emoji.subsets(packages))
        contrast.write_contrast(pictures)
        letters.for_pages(packages)
        packages.copy_licences()
        index.write_index(subsets + pictures)
        index.write_record(packages)


if __name__ == "__main__":
    main()

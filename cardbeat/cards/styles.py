"""How texts are set: the sizes, weights and leadings of a card's parts, and what setting them may take."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """How a text is set: it shrinks from its largest size to its smallest before it is cut."""

    weight: int
    largest_px: int
    smallest_px: int
    leading: float
    """The distance of baselines in parts of the size."""
    max_lines: int = 1
    tracking_em: float = 0
    """What is added between letters of Latin, Greek and Cyrillic."""


TEXT_WORK = 2_900_000
"""What a title or a description may take, in the unit of `typeset.work`: a full one in which no Han character comes
twice takes up to 2.9 million, one of Hindi with ten English words in it 2.7, other prose 1.4."""
LABEL_WORK = 1_300_000
"""Likewise a line of 38 different Han characters."""
LABELS_WORK = 1_600_000
"""What all labels of a card may take together."""
LEAST_LABELS_WORK = 720_000
"""Likewise beside a title that leaves less than that: an author, a tag and a domain in one script take up to 0.7
million."""
CARD_WORK = TEXT_WORK + LEAST_LABELS_WORK
"""What all texts of a card may take together. The title comes first, then the labels."""

LABEL_PX = 32
LABEL_LEADING = 1.3
BOLD = 600
"""Of labels."""

HEADLINE = 700
"""The weight of titles."""
TRACKING_EM = -0.02
"""Of titles: fonts are spaced for smaller sizes."""
LEADING, EUROPEAN_LEADING = 1.18, 1.06
"""Of titles; the second where all letters are Latin, Greek or Cyrillic."""
SHORT_TITLES = {
    12: Style(HEADLINE, 170, 112, LEADING, tracking_em=TRACKING_EM),
    32: Style(HEADLINE, 128, 104, LEADING, max_lines=2, tracking_em=TRACKING_EM),
}
"""By how many characters a title has at most: what is tried for it, in this order, before `TITLE`."""
SERIF_SCALE = 1.12
"""Of the largest of them: the small letters of Source Serif are lower than those of Inter."""
TITLE = Style(HEADLINE, 104, 40, LEADING, max_lines=5, tracking_em=TRACKING_EM)
LARGE_TITLE_PX, ALMOST_LARGE_PX = 64, 60
"""The description gives up lines until the title is as large as the first of these, or as the second where its lines
would end inside words or phrases else."""
DESCRIPTION = Style(400, 32, 30, leading=1.34, max_lines=3)
SHORT_DESCRIPTION = Style(400, 40, 36, leading=1.3, max_lines=2)
"""Tried before it under a short title, beside which it would look lost."""

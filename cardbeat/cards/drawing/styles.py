"""The sizes, weights and leadings of a card's texts, and how much work they may take, in the unit of `typeset.work`."""

from cardbeat.typeset.paragraph import Style

TEXT_WORK = 2_800_000
"""Limit of a title or a description. 150 characters of the Thousand Character Classic, all different, take 2.7 million,
Hindi with ten English words 2.4 million, other prose 2 million."""
LABEL_WORK = 1_300_000  # limit of one label: a line of 38 different Han characters
LABELS_WORK = 1_600_000  # limit of all labels of a card together
LEAST_LABELS_WORK, LABELS_WORK_STEP = 650_000, 100_000
"""Limit of all labels beside a title that leaves less: an author in Hindi or Tibetan takes 0.4 million of it."""
CARD_WORK = TEXT_WORK + LEAST_LABELS_WORK
"""Most work for all texts of a card. The title is set first, then the labels, then the description."""

LABEL_PX, LABEL_LEADING = 32, 1.3
BOLD = 600  # of labels
INITIAL = Style(700, 44, 22)
QUOTATION = Style(700, 96, 96)  # the mark in an avatar without a name

HEADLINE = 700  # of titles
TRACKING_EM = -0.02  # of titles: fonts are spaced for smaller sizes
LEADING = 1.18  # of titles
EUROPEAN_LEADING = 1.06  # of titles whose letters are all Latin, Greek or Cyrillic
TITLES = (
    Style(HEADLINE, 128, 112, LEADING, tracking_em=TRACKING_EM),
    Style(HEADLINE, 128, 104, LEADING, max_lines=2, tracking_em=TRACKING_EM),
    Style(HEADLINE, 104, 56, LEADING, max_lines=6, tracking_em=TRACKING_EM),
)
"""Tried in this order."""
SHORT_TITLES = (
    Style(HEADLINE, 240, 148, LEADING, tracking_em=TRACKING_EM),
    Style(HEADLINE, 176, 104, LEADING, max_lines=2, tracking_em=TRACKING_EM),
    Style(HEADLINE, 128, 56, LEADING, max_lines=5, tracking_em=TRACKING_EM),
)
"""Of short titles, tried in this order."""
LEAST_SHORT_PX = SHORT_TITLES[-1].smallest_px
SHORT_WORDS, SHORT_EM = 6, 14
"""A title of so many words, or no wider than this in one line, is short: its beginning is seen in a square crop. In
Chinese and Japanese words don't count."""
SQUARE_PX, MUCH_SMALLER, SLIGHTLY_SMALLER = 110, 0.75, 0.9
"""For its beginning it gets down to that size or that part of its size, for all of it down to the last part. If it
would get smaller, it may also be broken inside a word."""
SERIF_SCALE = 1.12
"""Factor on the largest size of a short title in Source Serif, whose small letters are lower than those of Inter."""
LARGE_TITLE_PX, ALMOST_LARGE_PX = 72, 66
"""While the title is smaller than the first, the description loses lines. The second is enough if a larger title would
break words or phrases."""
HARDLY_SMALLER = 0.85
"""A title that can't be large is made so much smaller for a description, or to keep its words whole."""
DESCRIPTION = Style(400, 36, 32, leading=1.32, max_lines=2)

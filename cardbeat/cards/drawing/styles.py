"""The sizes, weights and leadings of a card's texts."""

from cardbeat.typeset.text import Style

LABEL_PX = 32
LABEL_LEADING = 1.3
BOLD = 600
INITIAL = Style(700, 76, 24)
QUOTATION = Style(700, 180, 180)
"""The mark in an avatar without a name."""
MARGINAL_PX = (30, 20)
"""Largest and smallest size of the texts beside the title."""
MARGINAL_LINES = 5

HEADLINE = 700
"""Of titles."""
TITLE = Style(HEADLINE, 152, 56, max_lines=6)
LEADING = 1.18
EUROPEAN_LEADING = 1.0
"""Of titles whose letters are all Latin, Greek or Cyrillic."""
DESCRIPTION = Style(400, 34, 32, leading=1.32)
KEPT = (0.0, 0.7, 0.85)
"""What a title keeps of its size for a first line of description, a second, a third."""

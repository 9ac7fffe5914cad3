"""Fonts that the tests of one process share: to open all of them takes long."""

from cardbeat.typeset.faces.fonts import Fonts

FONTS = Fonts()
BASIC = Fonts(shaping=False)
"""Those of a host without a shaping engine."""

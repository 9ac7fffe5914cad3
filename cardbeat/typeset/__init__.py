"""Sets any text: Unicode in, glyphs on lines out. Knows nothing of cards.

`text.fit` sets a text into a box; everything else here is a step of that.
"""

"""Sets any Unicode text in the fonts of this package: text in, drawn lines out. It knows nothing of cards.

Begin with `text.fit`: it makes a `Paragraph` of the text, and a `Setting` finds the largest size at which that fits a
box. A paragraph finds fonts (`fonts`), directions (`bidi`) and line breaks (`breaks`) once; `wrap` divides it into
lines; `line` draws one. `labels` sets a domain and the letter of an avatar. `fonts.Fonts` holds what all texts share.
The rest are rules of Unicode (UAX #9, #14, #29, UTS #51), font files, and estimates of width and cost.

It imports Pillow, and `resources` to read the files in `cardbeat/fonts` and `cardbeat/words`; nothing else of cardbeat.
"""

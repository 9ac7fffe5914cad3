"""Sets any Unicode text in the fonts of this package: text in, drawn lines out.

Begin with `text.fit`: it makes a `Paragraph` of the text, which finds its fonts, directions,
widths, heights and line breaks once; `planned` finds the best size and lines in a box, with `wrap`;
`drawn` draws them. `unicode` holds rules of Unicode (UAX #9, #14, #29), `faces` the font files.

It imports Pillow, and `files` to read the files in `cardbeat/fonts` and `cardbeat/words`; nothing
else of cardbeat.
"""

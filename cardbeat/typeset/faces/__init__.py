"""Font files: which draws a character, how wide and high it is, and what to do without Raqm.

Begin with `fonts`, which the rest of `typeset` uses: it chooses a font file for each grapheme, and
finds colour emoji. `files` lists the files of `cardbeat/fonts`, opens them, measures and draws.
`unshaped` joins and places letters and marks where Raqm is missing.

May import `typeset.unicode`, `files` and other modules of this folder.
"""

"""Font files: which of them draws a character, how wide its glyph is, and how to do without a shaping engine.

Begin with `fonts`, which the rest of `typeset` uses. `catalogue` lists the files of `cardbeat/fonts`, `files` opens
them, `fallback` and `repertoire` choose one for each grapheme cluster, and `advances` gives widths. `emoji` finds
colour emoji; `unshaped` and `anchors` place letters and marks where Raqm is missing.

May import `typeset.unicode`, `resources` and other modules of this folder.
"""

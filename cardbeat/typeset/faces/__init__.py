"""Font files: which of them draws a character, how wide its glyph is, and how to do without a shaping engine.

Begin with `fonts`, which the rest of `typeset` uses. `catalogue` lists the files of `cardbeat/fonts`, `files` opens
them and gives the widths of characters; `fonts` chooses one for each grapheme cluster. `emoji` finds colour emoji;
`unshaped` joins and places letters and marks where Raqm is missing.

May import `typeset.unicode`, `resources` and other modules of this folder.
"""

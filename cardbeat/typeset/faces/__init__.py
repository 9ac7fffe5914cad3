"""Font files: which draws a character, how wide and high it is, and what to do without Raqm.

Begin with `fonts`, which the rest of `typeset` uses. `catalogue` lists the files of
`cardbeat/fonts`; `fonts` chooses one for each grapheme; `files` opens them, measures and draws.
`emoji` finds colour emoji; `unshaped` joins and places letters and marks where Raqm is missing.

May import `typeset.unicode`, `files` and other modules of this folder.
"""

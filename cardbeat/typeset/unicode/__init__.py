"""Rules of Unicode, without fonts: where text may break, in which order it runs, which characters belong together.

`clusters` finds grapheme clusters (UAX #29), `breaks` where a line may end (UAX #14), with `words` and `phrases` for
scripts without spaces; `bidi` orders letters (UAX #9); `han` knows the languages of Han.

May import `resources` and other modules of this folder. Begin with `clusters`, then `breaks`.
"""

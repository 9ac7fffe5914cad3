"""Rules of Unicode, without fonts: line breaks, the order of letters, and graphemes.

`clusters` finds grapheme clusters (UAX #29), `breaks` where a line may end (UAX #14), with `words`
for scripts without spaces; `bidi` orders letters (UAX #9); `han` knows languages:
shapes of Han and small words.

May import `files` and other modules of this folder. Begin with `clusters`, then `breaks`.
"""

"""From a `Card` to a PNG.

Begin with `render`. `templates` and `page` lay out the texts of a card, with `labels` for domains
and initials; `layout` holds the result. `background` reads the empty card of a theme, which
`light.build` has made, `canvas` paints onto it, and `png` writes the file. `themes` holds
colours, and `colours` makes themes for an accent; `emoji_contrast` makes emoji visible.

May import `cards.request`, `typeset` and what these import. A change of any file here, in
`typeset`, of the fonts or of the word lists changes `render.own_version`; stored cards are then
drawn again.
"""

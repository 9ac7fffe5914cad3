"""From a `Card` to a PNG.

Begin with `render`. `templates` and `page` lay out the texts of a card, `layout` holds the
result. `canvas` reads the empty card of a theme, which `light.build` has made, paints onto it, and
writes the PNG. `colours` holds the themes, and makes them for an accent.

May import `cards.request`, `typeset` and what these import. A change of any file here, in
`typeset`, of the fonts or of the word lists changes `render.own_version`; stored cards are then
drawn again.
"""

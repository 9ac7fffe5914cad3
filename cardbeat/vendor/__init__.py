"""Other people's code that travels inside: `mistune` turns the pages of `docs` into HTML.

Its files are those of the published package, byte for byte, and only those that are needed; `mistune/record.json` has
the version and the digests. Only `pages/markdown.py` imports it.
"""

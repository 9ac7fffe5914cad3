"""Other people's code that travels inside, unchanged.

`mistune` turns the pages of `docs` into HTML; only `pages/documentation.py` imports it.
`webencodings` has the labels of encodings that web pages may name; only `site/charset.py` imports
it. Each folder holds the files of the published package that are needed, byte for byte; its
`record.json` has the version and the digests.
"""

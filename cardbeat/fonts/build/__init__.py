"""Makes the files of `cardbeat/fonts` from npm packages: `python -m cardbeat.fonts.build`, in the project's folder.

Needs npm and the extra `fonts` (fonttools, brotli). The same versions of the packages, of fonttools and of zlib give
the same bytes. A tool for developers: neither the artifact nor the wheel holds it.
"""

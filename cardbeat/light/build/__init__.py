"""Makes the files of `cardbeat/light`: `python -m cardbeat.light.build`, in the project's folder.

A file holds an empty card as indices into its palette, compressed. Making one takes as long as drawing some cards.
"""

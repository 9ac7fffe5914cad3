"""Makes the pictures of `cardbeat/light`: `python -m cardbeat.light.build`, in the project's folder.

A picture holds an empty card as indices into its palette. Making one takes as long as drawing some cards.
"""

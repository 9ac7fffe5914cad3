"""The machine that cardbeat runs on: its operating system, disk, file owners, and terminal.

`system` is the only module that asks which operating system this is. Most others build on it:
`disk` keeps a reserve of free space, `ownership` guards the data folder, `staging` replaces a file
in one step, `output` writes to the terminal, `surroundings` knows Pillow, certificates and systemd.

May import `errors` and other modules of this folder, nothing else of the package. Begin with
`system`.
"""

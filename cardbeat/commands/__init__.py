"""The commands of the command line, one module for each, named after the command.

`options` has the options that several have, `serve` also what is likely a mistake in a server's
setup, for `doctor`. The command `import` is in `import_`, because its name is a word of Python.

Each command has `parser`, which returns its options and help, and `run`, which takes what that has
read and returns the exit status. Errors that the user can correct are `StartupError`, which `cli`
prints in one line.

They may import everything but `cli`; only `cli` imports them, by name. Begin reading with `card`,
which is the shortest, or with `serve`, which starts the server.
"""

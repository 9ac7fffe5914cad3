"""In place of the package's own, which would build parsers by names of modules that are not here."""

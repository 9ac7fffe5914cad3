"""In place of the package's own, which would import more of it than its table of labels."""

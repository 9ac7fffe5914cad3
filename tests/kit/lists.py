"""Lists that many tests need."""


def times(count, deed, *arguments, **options):
    """The results of a deed that is done so often."""
    return [deed(*arguments, **options) for _ in range(count)]


def each(rows, name):
    """What each of the rows has under a name: as an item if it has keys, else as an attribute."""
    found = []
    for row in rows:
        has_keys = hasattr(row, "keys")
        found.append(row[name] if has_keys else getattr(row, name))
    return found


def numbered(text, count):
    """The text so often, with a number from 0 on in place of its {}."""
    return [text.format(number) for number in range(count)]

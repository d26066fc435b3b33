"""What util.state lists."""


class Entry(dict):
    """One of a list: what is known of it by names, as attributes, too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

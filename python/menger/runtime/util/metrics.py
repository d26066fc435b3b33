"""Counters, gauges and histograms of a program's own, as ray.util.metrics. Each keeps its values in its process; nobody collects them."""


class Metric:
    def __init__(self, name, description="", tag_keys=None):
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of a metric is {name!r}; it must be a text that is not empty")
        if not isinstance(tag_keys or (), tuple) or not all(isinstance(each, str) for each in tag_keys or ()):
            raise TypeError(f"tag_keys is {tag_keys!r}; it must be a tuple of texts")
        self._name, self._description, self._tag_keys = name, description, tag_keys or ()
        self._default_tags, self._values = {}, {}  # The values by their tags.

    @property
    def info(self):
        return {
            "name": self._name,
            "description": self._description,
            "tag_keys": self._tag_keys,
            "default_tags": self._default_tags,
        }

    def set_default_tags(self, default_tags):
        self._check(default_tags)
        self._default_tags = dict(default_tags)
        return self

    def _check(self, tags):
        for key, value in tags.items():
            if key not in self._tag_keys:
                raise ValueError(f"the tag {key!r} is none of the metric '{self._name}', which has: {', '.join(self._tag_keys) or 'none'}")
            if not isinstance(value, str):
                raise TypeError(f"the tag {key!r} is {value!r}; it must be a text")

    def _place(self, tags):
        given = {**self._default_tags, **(tags or {})}
        self._check(given)
        if missing := [key for key in self._tag_keys if key not in given]:
            raise ValueError(f"the metric '{self._name}' needs a value for the tag '{missing[0]}'")
        return tuple(sorted(given.items()))

    def __reduce__(self):
        return (_restore, (type(self), self._arguments(), self._default_tags))

    def _arguments(self):
        return self._name, self._description, self._tag_keys


def _restore(kind, arguments, default_tags):
    return kind(*arguments).set_default_tags(default_tags)


class Counter(Metric):
    """What only grows."""

    def inc(self, value=1.0, tags=None):
        if not isinstance(value, (int, float)):
            raise TypeError(f"value is {value!r}; it must be a number")
        if value <= 0:
            raise ValueError(f"value is {value}; a counter grows by more than 0")
        place = self._place(tags)
        self._values[place] = self._values.get(place, 0.0) + value


class Gauge(Metric):
    """What is so now."""

    def set(self, value, tags=None):
        if value is None:
            return
        if not isinstance(value, (int, float)):
            raise TypeError(f"value is {value!r}; it must be a number")
        self._values[self._place(tags)] = value


class Histogram(Metric):
    """How many values were at most each of the boundaries, and how many more."""

    def __init__(self, name, description="", boundaries=None, tag_keys=None):
        super().__init__(name, description, tag_keys)
        if not boundaries or any(each <= 0 for each in boundaries):
            raise ValueError(f"boundaries are {boundaries!r}; they must be a list of numbers above 0")
        self.boundaries = list(boundaries)

    @property
    def info(self):
        return {**super().info, "boundaries": self.boundaries}

    def observe(self, value, tags=None):
        if not isinstance(value, (int, float)):
            raise TypeError(f"value is {value!r}; it must be a number")
        counts = self._values.setdefault(self._place(tags), [0] * (len(self.boundaries) + 1))
        counts[sum(value > each for each in self.boundaries)] += 1

    def _arguments(self):
        return self._name, self._description, self.boundaries, self._tag_keys

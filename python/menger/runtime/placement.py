"""What a call of a function or the making of an actor is told of where it shall run."""


class Placement:
    """In a placement group: it takes what it needs of one bundle, or with -1 of any."""

    def __init__(self, group, bundle=-1):
        self.placement_group, self.placement_group_bundle_index = group, bundle

    def call_options(self):
        """As library.CallOptions says it."""
        group = self.placement_group
        return {
            "group": group.reference.handle,
            "group_bundles": group.bundle_count,
            "bundle": self.placement_group_bundle_index,
        }

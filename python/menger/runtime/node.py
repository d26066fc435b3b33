"""What the one node is called."""

ADDRESS = "127.0.0.1"
OF_ONE = "node:"  # Begins the names of resources by which calls ask for one node.
HEAD = f"{OF_ONE}__internal_head__"
RESOURCES = (f"{OF_ONE}{ADDRESS}", HEAD)  # By which Ray's programs name it as a resource; there is one of each.

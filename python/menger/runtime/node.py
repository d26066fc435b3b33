"""What the one node is called."""

ADDRESS = "127.0.0.1"
RESOURCES = (f"node:{ADDRESS}", "node:__internal_head__")  # By which Ray's programs name it as a resource; there is one of each.

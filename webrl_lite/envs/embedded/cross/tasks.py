"""Tasks that need two sites."""

FAMILIES = []

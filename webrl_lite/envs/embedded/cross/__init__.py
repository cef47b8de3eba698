"""Tasks that need two sites."""

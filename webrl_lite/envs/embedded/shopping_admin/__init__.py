"""The site ``shopping_admin``: its data, its pages and its tasks."""

"""The site ``map``: its data, its pages and its tasks."""

"""The site ``reddit``: its data, its pages and its tasks."""

"""The site ``shopping``: its data, its pages and its tasks."""

"""The site ``gitlab``: its data, its pages and its tasks."""

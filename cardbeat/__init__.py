"""Cardbeat: link-preview cards and a dead man's switch for cron jobs, in one small server."""

__version__ = "2.0.0"

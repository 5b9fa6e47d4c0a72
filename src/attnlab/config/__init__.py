"""Configs: allowed settings, their checks, the objects built from them, and their identity."""

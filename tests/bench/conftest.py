"""Configurations of books of others are no tests; some import what is not here."""

collect_ignore = ["books"]

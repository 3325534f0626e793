"""From an executed chapter to what Sphinx renders."""

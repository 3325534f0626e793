"""The commands of `python -m`, one module each."""

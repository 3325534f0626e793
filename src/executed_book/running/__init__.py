"""Running code in processes of its own: chapters cell by cell, programs whole."""

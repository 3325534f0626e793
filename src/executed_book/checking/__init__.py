"""What must hold of every executed chapter: rules, pins, and how text is compared."""

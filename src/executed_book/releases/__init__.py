"""What other releases of JAX make of the book: every output that changes."""

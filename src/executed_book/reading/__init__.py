"""Reading pages: from files to chapters, and what is wrong with them."""

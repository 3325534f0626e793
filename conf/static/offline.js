// A page read from a folder may not fetch another one, so its search results come
// without excerpts.
if (window.location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS === "object") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

"""What cells gave on other platforms, kept with where and when that was."""

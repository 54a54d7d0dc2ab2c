"""What the browser SDK costs a page, and whom it takes for a program."""

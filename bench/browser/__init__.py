"""What the browser SDK costs a page, and which sessions it holds to be programs."""

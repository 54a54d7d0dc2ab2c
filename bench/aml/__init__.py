"""What AML rules find, and what watching costs."""

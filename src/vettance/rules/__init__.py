"""What rule authors can say."""

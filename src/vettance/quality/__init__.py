"""Quality: what each rule is worth, counted behind the log of decisions."""

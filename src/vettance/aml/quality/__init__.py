"""Quality of AML rules: what each is worth by what the cases of its alerts turned out to be."""

"""What the newest AML events leave out, and which rules that keeps from firing."""

"""Turns: one memory of AML in many processes, exactly as if there were one."""

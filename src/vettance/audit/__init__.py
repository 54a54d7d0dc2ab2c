"""The audit log: who changed, revealed or exported what, in chains that show every later change."""

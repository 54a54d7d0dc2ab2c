"""What the stores cost: durable writes, row-level security, history, growth."""

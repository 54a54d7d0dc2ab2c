"""What single parts of the service cost, in process."""

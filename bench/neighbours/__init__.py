"""What one tenant suffers while another one misbehaves."""

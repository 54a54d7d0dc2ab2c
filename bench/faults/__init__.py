"""What a service loses when it is broken, killed or sent anything at all."""

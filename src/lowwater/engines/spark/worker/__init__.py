"""Workers run stages, keep their state and send messages."""

"""The engines that run a plan, and the core that they share."""

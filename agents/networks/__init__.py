"""Networks: architectures, compiled inference, model files, and the agent that plays a policy."""

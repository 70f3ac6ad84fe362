"""Networks: architectures, compiled inference, and model files."""

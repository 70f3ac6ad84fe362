"""The rules of Bus as kernels over one game and its board."""

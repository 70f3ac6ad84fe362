"""Studies behind what is shipped."""

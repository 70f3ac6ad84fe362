"""Recorded games in words, as pictures, as pages and as datasets."""

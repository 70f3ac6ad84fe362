"""Recorded games in words, as pictures and as pages."""

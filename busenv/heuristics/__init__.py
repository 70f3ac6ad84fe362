"""The handcrafted evaluation of positions, and the playouts that use it."""

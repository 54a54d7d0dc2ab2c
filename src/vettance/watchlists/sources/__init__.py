"""Sources: one file for each publisher's format, and the table that names them."""

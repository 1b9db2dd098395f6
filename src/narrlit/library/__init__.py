"""Collections of stories with vectors: in memory, as an index, or as a vector table; search and embedding in parts."""

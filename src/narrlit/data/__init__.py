"""Records, their files, and the batches made of them."""

"""A small shard store over HTTP, with nodes in processes of their own."""

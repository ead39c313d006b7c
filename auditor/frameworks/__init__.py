"""What the calls of each export framework do: one file a framework, its data in `rules/frameworks/<name>.toml`."""

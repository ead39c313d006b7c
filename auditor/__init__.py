"""From export scripts to facts: the static pass, the command line, and the configuration."""

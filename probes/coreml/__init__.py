"""Core ML: packages and compiled models, read without a runtime; run on macOS, or evaluated as programs anywhere."""

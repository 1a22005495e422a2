"""The SGLang plugin; importable inside the engine with nothing else of the package loaded."""

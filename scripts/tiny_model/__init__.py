"""The bundled tiny model: its corpus, tokenizer, training, evaluation and export.

Needs torch, NumPy and `tokenizers`; nothing of it is installed with the project. Start with
`python3 -m scripts.tiny_model --help` in the root of the repository.
"""

# /// script
# dependencies = [
#     "equinox", "flatbuffers", "flax", "grain", "jax", "matplotlib",
#     "optax", "orbax-checkpoint", "rich", "scikit-learn", "tokenizers",
# ]
# ///
"""A language model, from a folder of text files to a server.

What they need is listed above, for pip 26.0 or later and for uv. Run them from the
folder `examples`, in this order:

    pip install --requirements-from-script lm/__init__.py
    python -m lm.train --data FOLDER --output RUN    # or without --data
    python -m lm.generate RUN --prompt "def read"
    python -m lm.export RUN EXPORTED
    python EXPORTED/serve.py

`lm.config` names each option, `lm.launch` starts several processes, `lm.adapt` fits
LoRA adapters to another kind of text, and `lm.baselines` evaluates models that count.
"""

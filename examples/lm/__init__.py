"""A language model, from a folder of text files to a server.

Run its modules from the folder `examples`, in this order:

    python -m lm.train --data FOLDER --output RUN    # or without --data
    python -m lm.generate RUN --prompt "def read"
    python -m lm.export RUN EXPORTED
    python EXPORTED/serve.py

`lm.config` names each option, `lm.launch` starts several processes, `lm.adapt` fits
LoRA adapters to another kind of text, and `lm.baselines` evaluates models that count.
"""

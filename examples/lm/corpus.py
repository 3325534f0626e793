"""From text to tokens on disk: a byte-pair encoding, and one file a shard.

A shard holds whole documents. Each process reads its own shards, so two processes
never read the same document.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from . import text
from .config import stop

END = "<|end|>"  # before and after each document; its id is 0


def train_tokenizer(texts, vocab):
    """A byte-level BPE, which encodes any text, as GPT-2's does."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[END],
        initial_alphabet=sorted(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() < vocab:
        stop(
            f"The text yields {tokenizer.get_vocab_size()} tokens, not {vocab}: "
            "give a smaller --vocab, or more text."
        )
    return tokenizer


def encode(tokenizer, texts):
    """Token ids (n,) of documents, each with END before it."""
    ids = [[0, *each.ids] for each in tokenizer.encode_batch(list(texts))]
    return np.concatenate([np.asarray(each, np.uint16) for each in ids])


def bytes_of_tokens(tokenizer):
    """How many bytes of text each token (vocab,) stands for."""
    tokens = (tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size()))
    # The byte-level alphabet writes each byte as one character.
    return np.array([0 if token == END else len(token) for token in tokens])


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def prepare(config):
    """Write the corpus unless it is there; its description.

    A corpus of other text, or of another vocabulary, is refused and left as it is.
    """
    folder = Path(config.corpus)
    texts = text.read_folder(config.data)
    wanted = {
        "text": digest("\0".join([*texts, *texts.values()]).encode()),
        "vocab": config.vocab,
        "shards": config.shards,
    }
    path = folder / "corpus.json"
    if path.exists():
        description = json.loads(path.read_text())
        if any(description[name] != value for name, value in wanted.items()):
            stop(
                f"{folder} holds the tokens of other text or of another vocabulary: "
                "give another --corpus, or remove it."
            )
        tokenizer_of(folder, description["tokenizer"])  # or the training would go on
        return description
    folder.mkdir(parents=True, exist_ok=True)
    parts = text.parts(texts)
    known = text.passages(text.joined(parts["train"]))
    tokenizer = train_tokenizer(parts["train"].values(), config.vocab)
    tokenizer.save(str(folder / "tokenizer.json"))
    shares = {}
    for part in ("validation", "test"):
        np.save(folder / f"{part}.npy", encode(tokenizer, parts[part].values()))
        shares[part] = float(text.seen_before(text.joined(parts[part]), known).mean())
    documents = {name: encode(tokenizer, [one]) for name, one in parts["train"].items()}
    shards = fill(documents, config.shards)
    for i, names in enumerate(shards):
        np.concatenate([documents[n] for n in names]).tofile(folder / f"train-{i}.bin")
    description = wanted | {
        "tokenizer": digest((folder / "tokenizer.json").read_bytes()),
        "files": {part: list(texts) for part, texts in parts.items()},
        "documents of shards": shards,
        "bytes": {part: len(text.joined(texts)) for part, texts in parts.items()},
        "tokens": sum(map(len, documents.values())),
        "shares in passages of the training text": shares,
    }
    # Written last: a corpus with a description is complete.
    path.write_text(json.dumps(description, indent=1) + "\n")
    return description


def fill(documents, count):
    """Names of documents for each shard; the shards are about equally long."""
    shards, sizes = [[] for _ in range(count)], [0] * count
    for name in sorted(documents, key=lambda name: (-len(documents[name]), name)):
        least = sizes.index(min(sizes))
        shards[least].append(name)
        sizes[least] += len(documents[name])
    if not all(shards):
        stop(f"{len(documents)} files are too few for {count} shards: lower --shards.")
    return shards


def tokenizer_of(folder, expected):
    """The tokenizer in a folder, if the model was trained with it."""
    path = Path(folder) / "tokenizer.json"
    if not path.exists():
        stop(f"There is no {path}: restore it, or work where the run was trained.")
    if digest(path.read_bytes()) != expected:
        stop(
            f"{path} is not the tokenizer that this model was trained with: restore it."
        )
    return Tokenizer.from_file(str(path))

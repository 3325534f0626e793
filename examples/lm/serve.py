"""Serve an exported model: `python EXPORTED/serve.py --port 8000`.

    curl localhost:8000 -d '{"prompts": ["def read"], "tokens": 20}'

The program needs JAX and tokenizers, and none of the model's source.
"""

import argparse
import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jax
import numpy as np
from tokenizers import Tokenizer


class Model:
    """The functions, weights and tokenizer of an exported folder."""

    def __init__(self, folder):
        about = json.loads((folder / "about.json").read_text())
        raw = (folder / "tokenizer.json").read_bytes()
        if hashlib.sha256(raw).hexdigest()[:16] != about["tokenizer"]:
            sys.exit(f"{folder}/tokenizer.json is not this model's: export it again.")
        self.tokenizer, self.context = (
            Tokenizer.from_str(raw.decode()),
            about["context"],
        )
        with np.load(folder / "weights.npz") as file:
            self.weights = [jax.numpy.asarray(file[name]) for name in file.files]
        self.prefill, self.step = (
            jax.jit(jax.export.deserialize((folder / f"{name}.jax").read_bytes()).call)
            for name in ("prefill", "step")
        )
        self.lock = threading.Lock()  # one request at a time has the device

    def write(self, prompts, tokens=40, seed=0, temperature=0.8, top_p=0.95):
        """Prompts with new text behind each; ValueError for what cannot be written."""
        if not prompts or not all(isinstance(text, str) for text in prompts):
            raise ValueError("'prompts' has to be a list of one or more strings")
        if not isinstance(tokens, int) or tokens < 1:
            raise ValueError("'tokens' has to be a whole number above 0")
        if not (temperature >= 0 and 0 < top_p <= 1):
            raise ValueError("'temperature' is at least 0, 'top_p' from 0 to 1")
        ids = [[0, *each.ids] for each in self.tokenizer.encode_batch(prompts)]
        longest = max(map(len, ids))
        if longest + tokens > self.context:
            raise ValueError(
                f"a prompt has {longest} tokens; with {tokens} new ones that is more "
                f"than the context of {self.context}: shorten it or ask for less"
            )
        text = np.zeros((len(ids), self.context), np.int32)
        for row, prompt in zip(text, ids, strict=True):
            row[: len(prompt)] = prompt
        lengths = np.array([len(prompt) for prompt in ids], np.int32)
        seeds = np.arange(seed, seed + len(ids), dtype=np.uint32)
        how = seeds, np.float32(temperature), np.float32(top_p)
        rows = np.arange(len(ids))
        with self.lock:
            token, cache = self.prefill(self.weights, text, lengths, *how)
            for i in range(tokens):
                text[rows, lengths + i] = token
                if i + 1 < tokens:
                    at = lengths + np.int32(i)
                    token, cache = self.step(self.weights, cache, token, at, *how)
        ends = zip(text, lengths, strict=True)
        return [self.tokenizer.decode(row[1 : n + tokens]) for row, n in ends]


def handler(model):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            try:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, answer = 200, {"texts": model.write(**json.loads(body))}
            except (ValueError, TypeError, OverflowError) as error:
                status, answer = 400, {"error": str(error)}
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    return Handler


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    args = parser.parse_args()
    folder = Path(__file__).parent
    try:
        model = Model(folder)
        server = ThreadingHTTPServer(("127.0.0.1", args.port), handler(model))
    except FileNotFoundError as error:
        sys.exit(f"{folder} is not complete: {error}. Export the model again.")
    except (OSError, OverflowError) as error:
        sys.exit(f"Cannot listen on port {args.port}: {error}. Give another --port.")
    print(f"Listening on http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()

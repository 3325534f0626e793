"""Start several processes of one module on this machine, and wait for them.

    python -m lm.launch --processes 2 --devices 4 lm.train --parallel fsdp

On a cluster its scheduler does this, and `jax.distributed.initialize()` needs no
arguments there.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(processes, devices, module, arguments):
    """Start the processes, each with its own devices simulated on the CPU."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": str(devices),
        "LM_COORDINATOR": f"127.0.0.1:{free_port()}",
        "LM_PROCESSES": str(processes),
    }
    return [
        subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env={**environment, "LM_PROCESS": str(index)},
        )
        for index in range(processes)
    ]


def wait(running):
    """The first status that is not 0, or 0; if one fails, the others are ended."""
    try:
        while any(process.poll() is None for process in running):
            if any(process.poll() for process in running):
                time.sleep(2)  # so that the others can say what they met
                break
            time.sleep(0.1)
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()  # JAX holds SIGTERM back while processes are joined
            process.wait()
    return next((p.returncode for p in running if p.returncode), 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--devices", type=int, default=4, help="for each process")
    parser.add_argument("module", help="lm.train, say")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    running = start(args.processes, args.devices, args.module, args.arguments)

    def forward(number, _frame):
        for process in running:
            process.send_signal(number)

    signal.signal(signal.SIGTERM, forward)
    sys.exit(wait(running))


if __name__ == "__main__":
    main()

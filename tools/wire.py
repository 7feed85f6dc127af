"""Write the messages of `draht.node.wire` anew from ``proto/``.

The generated modules refuse every protobuf that is older than the generator. What they use of it (a descriptor pool and
a builder) is the same in all versions that draht supports, so that check is left out: otherwise the newest generator
would force the newest protobuf on everybody who has another package with an upper bound.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROTO = ROOT / "proto"
WIRE = ROOT / "src/draht/node/wire"
PACKAGE = "draht/node/wire"
"""Where the files lie for protoc: names in its pool are shared by every package of a process, so they are long."""

CHECK = re.compile(
    r"^from google\.protobuf import runtime_version as _runtime_version\n"
    r"|^_runtime_version\.ValidateProtobufRuntimeVersion\(\n(?:    .*\n)*\)\n"
    r"|^# Protobuf Python Version: .*\n",
    re.MULTILINE,
)


def generate() -> dict[str, str]:
    """File name → content of every generated module."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(
            [
                *(sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PACKAGE}={PROTO}"),
                *(f"--python_out={scratch}", f"--pyi_out={scratch}"),
                *(f"{PACKAGE}/{path.name}" for path in sorted(PROTO.glob("*.proto"))),
            ],
            check=True,
        )
        made = sorted(Path(scratch, PACKAGE).iterdir())
        return {path.name: CHECK.sub("", path.read_text(encoding="utf-8")) for path in made}


def main() -> None:
    """Entry point of the script."""
    modules = generate()
    for path in WIRE.glob("*_pb2.py*"):
        if path.name not in modules:
            path.unlink()
    for name, text in modules.items():
        (WIRE / name).write_text(text, encoding="utf-8")
    print(f"{len(modules)} files in {WIRE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

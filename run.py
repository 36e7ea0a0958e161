"""Set up NPU Workbench from nothing and run it: ``python3 run.py app | lab | test | bench | accuracy | fuzz``.

Needs only the standard library. Makes ``.venv`` beside this file, installs the project into it once (and again when
pyproject.toml changes), then runs the command; what follows it is handed on, e.g. ``python3 run.py test tests/trace``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NBVAL = ("--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=300")


def run(*command: str | Path, check: bool = True) -> int:
    """Run a command in the project's root; stop with its exit code when it fails and ``check`` is set."""
    print("$", *command, flush=True)
    code = subprocess.run([str(part) for part in command], cwd=ROOT, check=False).returncode
    if check and code:
        sys.exit(code)
    return code


def set_up() -> None:
    """Make the environment, install the project with its test tools and compile it, unless that was done for this pyproject.toml."""
    stamp = VENV / "installed"
    want = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + str(ROOT).encode()).hexdigest()
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == want:
        return
    if sys.version_info < (3, 11):  # noqa: UP036 (an older python may well start this file)
        sys.exit(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}: start run.py with a newer one")
    shutil.rmtree(VENV, ignore_errors=True)
    uv = shutil.which("uv")
    if uv:
        run(uv, "venv", "--python", sys.executable, VENV)
        # uv writes no bytecode by itself, and the first import would cost 20 s
        run(uv, "pip", "install", "--python", PYTHON, "--compile-bytecode", "-e", ".[test]")
    elif importlib.util.find_spec("ensurepip"):
        run(sys.executable, "-m", "venv", VENV)
        run(PYTHON, "-m", "pip", "install", "--quiet", "-e", ".[test]")
    elif importlib.util.find_spec("pip"):  # Debian without python3-venv: the system's pip drives an environment that has none
        run(sys.executable, "-m", "venv", "--without-pip", VENV)
        run(sys.executable, "-m", "pip", "--python", PYTHON, "install", "--quiet", "-e", ".[test]")
    else:
        sys.exit("neither uv, ensurepip nor pip was found: install one of them (Debian: apt-get install python3-venv)")
    run(BIN / "workbench", "warmup", check=False)  # compile the kernels now rather than during the first prediction
    stamp.write_text(want)


def browser() -> None:
    """Install what the browser tests need and is not there: Chromium, and the libatomic1 that playwright's driver loads."""
    missing = [] if any(shutil.which(name) for name in BROWSERS) else ["chromium"]
    missing += ["libatomic1"] if sys.platform == "linux" and not find_library("atomic") else []
    if not missing:
        return
    if shutil.which("apt-get") and os.geteuid() == 0:
        os.environ["DEBIAN_FRONTEND"] = "noninteractive"
        run("apt-get", "update", "-qq", check=False)
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing, check=False)
    else:
        run(PYTHON, "-m", "playwright", "install", "--with-deps", "chromium", check=False)


def test(arguments: list[str]) -> int:
    """Check style and types, then run the ordinary tests and the notebooks (or only what the arguments name)."""
    browser()
    pytest = (PYTHON, "-m", "pytest", "-n", str(min(os.cpu_count() or 1, 4)), "--dist", "loadfile")
    if arguments:
        return run(*pytest, *arguments, check=False)
    codes = [
        run(PYTHON, "-m", "ruff", "check", check=False),
        run(PYTHON, "-m", "ruff", "format", "--check", check=False),
        run(PYTHON, "-m", "mypy", check=False),
        run(*pytest, *NBVAL, *(folder for folder in ("tests", "notebooks") if (ROOT / folder).is_dir()), check=False),
    ]
    return max(codes)


def main() -> int:
    """Run one command and return its exit code."""
    command, *arguments = sys.argv[1:] or ["help"]
    marked = {"bench": "benchmark", "accuracy": "accuracy", "fuzz": "fuzz"}
    started = {"app": "serve", "lab": "lab"}
    if command not in {"test", *marked, *started}:
        print(__doc__)
        return 0 if command in {"help", "-h", "--help"} else 2
    set_up()
    if command == "test":
        return test(arguments)
    if command in marked:
        os.environ.setdefault("HYPOTHESIS_PROFILE", "fuzz" if command == "fuzz" else "ci")
        return run(PYTHON, "-m", "pytest", "-s", "-m", marked[command], *(arguments or ["tests"]), check=False)
    return run(BIN / "workbench", started[command], *arguments, check=False)


if __name__ == "__main__":
    sys.exit(main())

"""Damaged files are read: that they give what they gave, or one clear error.

Reading also takes no more memory than the file accounts for, ends, and reaches for nothing outside of its folder.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import resource
import signal
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tests.support import ROOT
from tests.support.damaged.damage import Damage, Donors
from tests.support.traced_memory import ResidentPeak, status_bytes
from tfray.cli import main
from tfray.errors import OpError

ALLOWANCE = 16 << 20
"""16 MiB: what reading takes besides twice the file. These files are small, and each operation of a graph is some 4 KiB
of objects, whatever it is in the file. One may declare 32,768 outputs, of 400 bytes each; and the last of several
elements of a constant may stand for the rest of 4 MiB."""

CALLS = 100 << 20
"""100 MiB: what reading takes besides where functions call one another so often that it is refused at last."""

ROOM = 1 << 30
"""1 GiB of addresses: what takes more fails at once, and the machine lives on."""

SECONDS = 5.0
"""Of processor time, for a file that is read in a hundredth of it."""

INTERNAL = re.compile(
    r"\b((Key|Index|Attribute|Assertion|Recursion|UnicodeDecode|UnicodeEncode|Type|Value|Memory|Decode|Overflow|"
    r"ZeroDivision|UnboundLocal|struct\.)[eE]rror|StopIteration)\b"
    r"|to unpack|invalid literal|object has no|unhashable|list index|positional arg|keyword arg|NoneType|object is"
)
"""Python's names of errors, which say nothing to a person who has a file."""

VAGUE = re.compile("a part of it is not what belongs there")
"""What is said where no check has found what is wrong."""


@dataclass(frozen=True)
class FileKind:
    """A kind of file.

    Attributes:
        prepare: Writes an intact one of each into a folder. Returns them, each as the argument of `read`.
        read: Reads one.
        victims: The files of one that may be damaged.
        rewrite: Damages the contents of a file, below its form: given `Damage`, what it may take from others, the
            file's name, and its contents.
        inspected: Whether ``tfray inspect`` reads it.
        few: How many are read in a second or two.
    """

    prepare: Callable[[Path], list[Path]]
    read: Callable[[Path], object]
    rewrite: Callable[[Damage, Donors, str, bytes], bytes] = lambda damage, donors, name, contents: contents
    victims: Callable[[Path], list[Path]] = lambda path: [path]
    inspected: bool = True
    few: int = 100


class NotClear(AssertionError):
    """What a damaged file gave was no clear error."""


class TooSlow(BaseException):
    """Reading takes too long."""


@dataclass
class Results:
    """What damaged files gave.

    Attributes:
        errors: How many gave which kind of error; those that could be read are under ``read``.
        vague: How many errors say only that something is wrong with a part.
        peak: The most memory that one took, in bytes; and that over what it may take.
        longest: Processor time of the longest, in seconds.
    """

    errors: Counter[str] = field(default_factory=Counter)
    vague: int = 0
    peak: int = 0
    share: float = 0.0
    longest: float = 0.0


class Damaged:
    """Intact files of a kind in a folder, to be damaged one after the other.

    Args:
        kind: The kind.
        folder: An empty folder.
    """

    def __init__(self, kind: FileKind, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.files = kind.prepare(folder)
        self.donors = Donors()
        sizes = [max((each.stat().st_size for each in kind.victims(path)), default=1) for path in self.files]
        self._weights = [1 / (1000 + size) for size in sizes]  # large ones take longer, and have little else in them
        self.results = Results()
        self._seen: set[Path] = set()

    def check(self, seed: str) -> None:
        """Damage a file and read it. Raises `NotClear` unless it gives what it may."""
        damage = Damage(seed)
        path = damage.random.choices(self.files, self._weights)[0]
        if path not in self._seen:
            self._seen.add(path)
            self.kind.read(path)  # what is loaded once is not the damaged file's
        victim = damage.random.choice(self.kind.victims(path))
        contents = victim.read_bytes()
        changed = contents
        if damage.random.random() < 0.75:
            changed = self.kind.rewrite(damage, self.donors, victim.name, contents)
        if changed == contents or damage.random.random() < 0.1:
            changed = damage.octets(changed)
        allowed = 2 * len(changed) + ALLOWANCE
        victim.write_bytes(changed)
        started = time.process_time()
        try:
            with _limited(self.folder):
                result, text, peak = _read(
                    self.kind, path, inspect=self.kind.inspected and damage.random.random() < 0.1
                )
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            (self.folder.parent / "failed").write_bytes(changed)
            raise NotClear(f"{seed}: {victim.name}: {type(error).__name__}: {error}") from error
        finally:
            victim.write_bytes(contents)
        spent = time.process_time() - started
        allowed += CALLS if "call one another" in text else 0
        self.results.vague += VAGUE.search(text) is not None
        self.results.errors[result] += 1
        self.results.peak = max(self.results.peak, peak)
        self.results.share = max(self.results.share, peak / allowed)
        self.results.longest = max(self.results.longest, spent)
        if peak > allowed:
            raise NotClear(
                f"{seed}: {victim.name}: {peak} bytes of memory for a file of {len(changed)}, {allowed} allowed"
            )
        if spent > SECONDS:
            raise NotClear(f"{seed}: {victim.name}: {spent:.1f} s")


def check_damaged(kind: FileKind, folder: Path, numbers: Iterable[int]) -> Results:
    """Damage files of a kind, one for each number. Raises `NotClear` at the first that does not give what it may."""
    damaged = Damaged(kind, folder)
    for number in numbers:
        damaged.check(str(number))
    return damaged.results


def _read(kind: FileKind, path: Path, inspect: bool = False) -> tuple[str, str, int]:
    """Read a file; the kind of its error, what it says, and the memory that it took."""
    peak = ResidentPeak()
    if inspect:
        return *_inspect(path), peak.bytes()
    try:
        kind.read(path)
        return "read", "", peak.bytes()
    except OpError as error:
        found = peak.bytes()
        check_clear(str(error))
        return type(error).__name__, str(error), found


def _inspect(path: Path) -> tuple[str, str]:
    shown = CliRunner().invoke(main, ["inspect", str(path)])
    if shown.exception is not None and not isinstance(shown.exception, SystemExit):
        raise shown.exception
    if shown.exit_code:
        if not shown.output.startswith("tfray: "):
            raise NotClear(f"exit code {shown.exit_code}, {shown.output!r}")
        check_clear(shown.output)
    return f"inspect: exit code {shown.exit_code}", shown.output if shown.exit_code else ""


def check_clear(text: str) -> None:
    """Raise `NotClear` for a message that tells of Python rather than of the file, or that is none."""
    if "fits into memory" in text:
        raise NotClear(f"a size that was not checked before memory was asked for: {text[:2000]!r}")
    found = INTERNAL.search(text)
    if found or not text.strip() or len(text) > 8000:
        raise NotClear(f"no clear message: {text[:2000]!r}")
    if any(unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t" for letter in text):
        raise NotClear(f"a message with control characters: {text[:2000]!r}")


# -- limits --------------------------------------------------------------------------------------------

_guarded: list[str] = []
"""The folder that is read from now; empty when anything goes."""
_reached: list[str] = []

_RUNS = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen", "pickle.find_class",
         "socket.connect", "socket.bind", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.link",
         "os.symlink", "shutil.rmtree", "ctypes.dlopen", "marshal.load")  # fmt: skip


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if not _guarded:
        return
    if event in _RUNS:
        _reached.append(f"{event}{args}")
    elif event == "open" and isinstance(args[0], (str, bytes)):
        path = os.path.abspath(os.fsdecode(args[0]))
        writes = (isinstance(args[1], str) and set(args[1]) & set("wax+")) or (
            isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        )
        if not path.startswith((_guarded[0], "/proc/self/")) and (writes or not path.startswith(_CODE)):
            _reached.append(f"open {path}")


_CODE = (str(ROOT), sys.prefix, os.path.realpath(sys.prefix), sys.base_prefix, os.path.dirname(os.__file__),
         "/sys", "/dev", "/usr", "/lib", "/etc/mime")  # fmt: skip
"""Where Python's own modules and libraries are read from when they are first needed."""


@functools.cache
def _install_audit() -> None:
    sys.addaudithook(_audit)  # for good: it does nothing while nothing is guarded


@contextlib.contextmanager
def _limited(folder: Path):
    """Within it reading ends soon, and nothing is opened outside of the folder, written or started."""

    def stop(number: int, frame: Any) -> None:
        raise TooSlow(f"more than {SECONDS} s")

    _install_audit()
    before = signal.signal(signal.SIGVTALRM, stop)
    most, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (status_bytes("VmSize") + ROOM, hard))
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    _reached.clear()
    _guarded.append(str(folder))
    try:
        yield
    finally:
        _guarded.clear()
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    if _reached:
        raise NotClear(f"reading reached for {_reached}")

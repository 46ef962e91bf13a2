"""The engines: how each is built, how it indexes and serves.

Each peer is a program with the commands `version`, `index TOKENS DIR --memory BYTES` and `serve DIR`; tierdex has flags of
its own. Cargo builds tierdex, Tantivy and SeekStorm, Maven Lucene, and pip installs the binding of PISA.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tierdex_driver.errors import Failed
from tierdex_driver.peers.settings import UNLIMITED, Settings
from tierdex_driver.peers.text import Corpus, say

WORKSPACE = Path(__file__).resolve().parents[3] / "peers" / "search"
# Oldest release of Java that has what the peer uses.
JAVA_MIN = 25
PISA = "pyterrier_pisa==0.4.9"
JAVA_FLAGS = ("--add-modules=jdk.incubator.vector", "--enable-native-access=ALL-UNNAMED")
# A heap that is large enough for few collections.
JAVA_LARGE = ("-Xmx1g", "-XX:+UseParallelGC")
# A heap of 16 MB, and a collector and threads that take little memory beside it.
JAVA_SMALL = ("-Xms16m", "-Xmx16m", "-XX:+UseSerialGC", "-Xss512k", "-XX:ReservedCodeCacheSize=16m")
# Segments and constants of BM25 by which tierdex is compared with itself.
OWN_SEGMENTS, OWN_BM25, DEFAULT_BM25 = 8, (0.9, 0.4), (1.2, 0.75)


@dataclass(frozen=True)
class Engine:
    """An engine that was built: its release, the words that start it, and the files that make it up."""

    kind: str
    version: str
    program: tuple[str, ...]
    files: tuple[Path, ...]
    # Words of a server that takes little memory, where they differ.
    small: tuple[str, ...] = ()

    def digest(self) -> str:
        """Release and build; measurements of different builds are not mixed."""
        hashed = hashlib.sha256()
        for path in self.files:
            hashed.update(path.read_bytes())
        return f"{self.version} {hashed.hexdigest()[:16]}"


@dataclass(frozen=True)
class Contender:
    """An engine with a variant of the index and of the queries, and with a name in tables."""

    name: str
    engine: Engine
    positions: bool
    segments: int
    bm25: tuple[float, float] | None
    # How mapped files are read; none if the index is in memory, and for tierdex.
    advice: str | None = None

    @property
    def kind(self) -> str:
        return self.engine.kind

    def index_name(self, settings: Settings) -> str:
        exact = "-exact" if self.kind == "tierdex" and settings.norms == "exact" else ""
        return self.kind + exact + self.index_tail

    @property
    def index_tail(self) -> str:
        # SeekStorm always has positions.
        positions = "-positions" if self.positions and self.kind != "seekstorm" else ""
        return positions + (f"-{self.segments}" if self.segments > 1 else "")

    def directory(self, settings: Settings) -> Path:
        return settings.data_dir / "indexes" / self.index_name(settings)

    def index_commands(self, settings: Settings, corpus: Corpus, parts: Sequence[Path]) -> list[list[str]]:
        """The commands that index the text one after the other: of tierdex one for each part."""
        directory = str(self.directory(settings))
        if self.kind == "tierdex":
            return [self.part_command(settings, directory, part, part == parts[0]) for part in parts]
        memory = str(settings.memory << 20)
        words = [*self.engine.program, "index", str(corpus.path), directory, "--memory", memory]
        words += ["--positions"] if self.positions else []
        if self.segments > 1:
            words += ["--commit-every", str(-(-corpus.documents // self.segments))]
        return [words]

    def part_command(self, settings: Settings, directory: str, part: Path, is_first: bool) -> list[str]:
        words = [self.engine.program[0], "index", str(part), "--out", directory]
        words += ["--format", "tsv", "--columns", "text", "--threads", "1"]
        words += ["--merge", "none" if self.segments > 1 else "one", "--memory", f"{settings.memory}M"]
        if not is_first:
            return [*words, "--append"]
        words += ["--tokenizer", "whitespace", "--store", "none", "--norms", settings.norms]
        return words + (["--positions"] if self.positions else [])

    def serve_command(self, settings: Settings, command: str = "") -> list[str]:
        """The words of the server; with a limit those for a command."""
        directory = str(self.directory(settings))
        program = self.engine.small if self.advice and self.engine.small else self.engine.program
        if self.kind == "tierdex":
            program = (str(self.engine.files[1]),)
        words = [*program, "serve", directory]
        if self.advice:
            return [*words, "--advice", self.advice]
        if settings.limit:
            words += [*cache_flags(settings).split(), "--threads", "1"]
            # tierdex scores all matches where the peers do.
            return words + (["--exhaustive"] if command.endswith("_COUNT") else [])
        if self.bm25:
            words += ["--k1", f"{self.bm25[0]:g}", "--b", f"{self.bm25[1]:g}"]
        return words


def cache_flags(settings: Settings) -> str:
    """Flags of tierdex under a limit: its cache is a part of its memory budget, which is a part of the limit."""
    if settings.tierdex_flags is not None:
        return settings.tierdex_flags
    assert settings.limit
    size = settings.limit - settings.spare
    return f"--cache dram:{size}" if settings.beyond_own else f"--dram {size}"


def contenders(settings: Settings, engines: list[Engine], positions: bool) -> tuple[list[Contender], list[str]]:
    """All that take part, for sets that need positions or for the others, and why others do not."""
    found, omitted = [], []
    for engine in engines:
        one = Contender(engine.kind, engine, positions, settings.segments, settings.bm25)
        if reason := lacks(one):
            omitted.append(f"{one.name} is omitted from {'phrases' if positions else 'this run'}: {reason}")
        elif not settings.limit:
            found.append(one)
            if engine.kind == "tierdex" and settings.own_variants:
                found += own_variants(one)
        elif engine.kind == "tierdex":
            found.append(one)
        else:
            found += [replace(one, name=f"{one.name} random", advice="random"), replace(one, advice="normal")]
    return found, omitted


def lacks(contender: Contender) -> str | None:
    """Why an engine does not have a variant."""
    kind = contender.kind
    if kind in ("tantivy", "seekstorm") and contender.bm25:
        return "the constants of its BM25 are fixed"
    if kind == "pisa" and contender.positions:
        return "it has no positions"
    if kind in UNLIMITED and contender.segments > 1:
        return "it has no segments of given documents"
    return None


def own_variants(one: Contender) -> list[Contender]:
    """tierdex with another number of segments, and with other constants."""
    segments = OWN_SEGMENTS if one.segments == 1 else 1
    bm25 = None if one.bm25 else OWN_BM25
    k1, b = bm25 or DEFAULT_BM25
    plural = "" if segments == 1 else "s"
    return [
        replace(one, name=f"{one.name} {segments} segment{plural}", segments=segments),
        replace(one, name=f"{one.name} k1 {k1} b {b}", bm25=bm25),
    ]


def prepare(settings: Settings) -> tuple[list[Engine], list[str]]:
    """Builds the selected engines. Those that cannot be built are omitted, with the reasons; tierdex may not be."""
    built, omitted = [], []
    for kind in settings.engines:
        if settings.limit and kind in UNLIMITED:
            continue
        say(f"building {kind}")
        try:
            built.append(build(kind, settings.work))
        except Failed as error:
            if kind == "tierdex":
                raise
            omitted.append(f"{kind} is omitted: {error}")
            say(omitted[-1])
    if not built:
        raise Failed("no engine is left to measure")
    return built, omitted


def build(kind: str, work: Path) -> Engine:
    if not WORKSPACE.is_dir():
        raise Failed(f"{WORKSPACE} is missing; run the driver from a clone of tierdex")
    small: tuple[str, ...] = ()
    if kind == "tierdex":
        project = WORKSPACE.parents[2]
        files: tuple[Path, ...] = (
            cargo(project, "tierdex-cli", "tierdex"),
            cargo(project, "tierdex-bench", "tierdex-bench"),
        )
        program: tuple[str, ...] = (str(files[0]),)
    elif kind == "lucene":
        jar, home = WORKSPACE / "lucene/target/tierdex-peer-lucene.jar", java_home()
        maven = ["mvn", "-q", "-B", "-DskipTests", "package"]
        output(maven, WORKSPACE / "lucene", os.environ | {"JAVA_HOME": str(home)})
        tail = ("-cp", f"{jar}:{jar.parent}/dependency/*", "org.tierdex.peer.lucene.Main")
        program = (str(home / "bin/java"), *JAVA_FLAGS, *JAVA_LARGE, *tail)
        small = (str(home / "bin/java"), *JAVA_FLAGS, *JAVA_SMALL, *tail)
        return Engine(kind, output([*program, "version"]), program, (jar,), small)
    elif kind == "pisa":
        python, script = work / "pisa-venv/bin/python", WORKSPACE / "pisa/peer.py"
        if not python.exists() or subprocess.run([python, "-c", "import pyterrier_pisa"], capture_output=True).returncode:
            output(["python3", "-m", "venv", str(work / "pisa-venv")])
            output([str(python), "-m", "pip", "install", "-q", PISA])
        program = (str(python), str(script))
        return Engine(kind, output([*program, "version"]), program, (script,))
    else:
        name = f"tierdex-peer-{kind}"
        path = cargo(WORKSPACE, name, name)
        program, files = (str(path),), (path,)
    version = output([*program, "--version" if kind == "tierdex" else "version"])
    return Engine(kind, version, program, files)


def cargo(directory: Path, package: str, program: str) -> Path:
    """Builds a package and returns the path of its program."""
    words = ["build", "--release", "--quiet", "-p", package, "--message-format", "json"]
    lines = run([os.environ.get("CARGO", "cargo"), *words], directory).splitlines()
    paths = [json.loads(line).get("executable") for line in lines if line.startswith("{")]
    found = [Path(path) for path in paths if path and Path(path).stem == program]
    if not found:
        raise Failed(f"cargo built no program {program} of {package}")
    return found[0]


def java_home() -> Path:
    """The first of JAVA_HOME, the `java` of the path, and the usual directory that is new enough."""
    named, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    homes = [Path(named)] if named else []
    homes += [Path(on_path).resolve().parents[1]] if on_path else []
    for home in [*homes, *sorted(Path("/usr/lib/jvm").glob("*"))]:
        # It must have a compiler.
        if (home / "bin/javac").exists():
            release = re.match(r"javac (\d+)", output([str(home / "bin/javac"), "-version"]))
            if release and int(release[1]) >= JAVA_MIN:
                return home
    raise Failed(f"there is no JDK of release {JAVA_MIN} or later; install one and set JAVA_HOME")


def output(command: Sequence[str], directory: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """The last line of the output of a program."""
    lines = run(command, directory, environment).split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def run(command: Sequence[str], directory: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """The output of a program. Failed with a line that names the error."""
    try:
        done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise Failed(f"cannot run {command[0]}: {error.strerror}; is it installed?") from error
    if done.returncode == 0:
        return done.stdout
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    raise Failed(f"{command[0]} failed: {(errors or lines[-1:] or ['no output'])[0]}")

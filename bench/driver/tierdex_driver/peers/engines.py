"""The engines: how each is built, how it indexes and serves.

Each peer is a program with the commands `version`, `index TOKENS DIR --memory BYTES` and `serve DIR`; tierdex has flags of
its own. Cargo builds tierdex, Tantivy and SeekStorm, Maven Lucene, and pip installs the binding of PISA.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tierdex_driver.errors import Failed
from tierdex_driver.peers.settings import UNLIMITED, Settings
from tierdex_driver.peers.text import Corpus, say

WORKSPACE = Path(__file__).resolve().parents[3] / "peers" / "search"
# Oldest release of Java that has what the peer uses.
JAVA_MIN = 25
PISA = "pyterrier_pisa==0.4.9"
JAVA = ("--add-modules=jdk.incubator.vector", "--enable-native-access=ALL-UNNAMED")
# A heap that is large enough for few collections.
JAVA_LARGE = ("-Xmx1g", "-XX:+UseParallelGC")
# A heap of 16 MB, and a collector and threads that take little memory beside it.
JAVA_SMALL = ("-Xms16m", "-Xmx16m", "-XX:+UseSerialGC", "-Xss512k", "-XX:ReservedCodeCacheSize=16m")
# Segments and constants of BM25 by which tierdex is compared with itself.
OWN_SEGMENTS, OWN_BM25, DEFAULT_BM25 = 8, (0.9, 0.4), (1.2, 0.75)


@dataclass(frozen=True)
class Engine:
    """An engine that was built: its release, the words that start it, and its files, that which indexes first."""

    kind: str
    version: str
    program: list[str]
    files: list[Path]
    # Words of a server that takes little memory, where they differ.
    small: list[str]

    def digest(self) -> str:
        """Release and build; measurements of different builds are not mixed."""
        hashed = hashlib.sha256(b"".join(path.read_bytes() for path in self.files))
        return f"{self.version} {hashed.hexdigest()[:16]}"


@dataclass(frozen=True)
class Contender:
    """An engine with a variant of the index and of the queries, and with a name in tables."""

    name: str
    engine: Engine
    positions: bool
    segments: int
    bm25: tuple[float, float] | None
    # How a peer reads mapped files; None if its index is in memory.
    advice: str | None = None

    @property
    def kind(self) -> str:
        return self.engine.kind

    @property
    def tail(self) -> str:
        """The end of the name of the index. SeekStorm always has positions."""
        positions = "-positions" if self.positions and self.kind != "seekstorm" else ""
        return positions + (f"-{self.segments}" if self.segments > 1 else "")

    def directory(self, settings: Settings) -> Path:
        exact = "-exact" if self.kind == "tierdex" and settings.norms == "exact" else ""
        return settings.data / "indexes" / (self.kind + exact + self.tail)

    def index_commands(self, settings: Settings, corpus: Corpus, parts: Sequence[Path]) -> list[list[str]]:
        """The commands that index the text one after the other: of tierdex one for each part."""
        directory = str(self.directory(settings))
        first = ["--positions"] if self.positions else []
        if self.kind == "tierdex":
            common = [*self.engine.program, "index", "--out", directory, "--format", "tsv", "--columns", "text"]
            common += [
                "--threads",
                "1",
                "--merge",
                "none" if self.segments > 1 else "one",
                "--memory",
                f"{settings.memory}M",
            ]
            first += ["--tokenizer", "whitespace", "--store", "none", "--norms", settings.norms]
            return [[*common, *(first if part == parts[0] else ["--append"]), str(part)] for part in parts]
        if self.segments > 1:
            first += ["--commit-every", str(-(-corpus.documents // self.segments))]
        memory = str(settings.memory << 20)
        return [[*self.engine.program, "index", str(corpus.path), directory, "--memory", memory, *first]]

    def serve_command(self, settings: Settings, command: str = "") -> list[str]:
        """The words of the server; with a limit those for a command."""
        program = self.engine.small if self.advice and self.engine.small else self.engine.program
        if self.kind == "tierdex":
            program = [str(self.engine.files[1])]
        words = [*program, "serve", str(self.directory(settings))]
        if self.advice:
            return [*words, "--advice", self.advice]
        if settings.limit:
            # tierdex scores all matches where the peers do.
            return [*words, *cache_flags(settings), "--threads", "1", *["--exhaustive"] * command.endswith("_COUNT")]
        return words + (["--k1", f"{self.bm25[0]:g}", "--b", f"{self.bm25[1]:g}"] if self.bm25 else [])

    def lacks(self) -> str | None:
        """Why the engine does not have the variant."""
        if self.kind in ("tantivy", "seekstorm") and self.bm25:
            return "the constants of its BM25 are fixed"
        if self.kind == "pisa" and self.positions:
            return "it has no positions"
        return "it has no segments of given documents" if self.kind in UNLIMITED and self.segments > 1 else None


def cache_flags(settings: Settings) -> list[str]:
    """Flags of tierdex under a limit: its cache is a part of its memory budget, which is a part of the limit."""
    size = settings.limit - settings.tierdex_spare
    return ["--cache", f"dram:{size}"] if settings.beyond_own else ["--dram", str(size)]


def contenders(settings: Settings, engines: list[Engine], positions: bool) -> tuple[list[Contender], list[str]]:
    """All that take part, for sets that need positions or for the others, and why others do not."""
    found, omitted = [], []
    for engine in engines:
        one = Contender(engine.kind, engine, positions, settings.segments, settings.bm25)
        if reason := one.lacks():
            omitted.append(f"{one.name} is omitted from {'phrases' if positions else 'this run'}: {reason}")
        elif settings.limit and engine.kind != "tierdex":
            found += [replace(one, name=f"{one.name} random", advice="random"), replace(one, advice="normal")]
        else:
            found += [one, *(own_variants(one) if settings.own_variants and engine.kind == "tierdex" else ())]
    return found, omitted


def own_variants(one: Contender) -> list[Contender]:
    """tierdex with another number of segments, and with other constants."""
    segments = OWN_SEGMENTS if one.segments == 1 else 1
    bm25 = None if one.bm25 else OWN_BM25
    k1, b = bm25 or DEFAULT_BM25
    named = replace(one, name=f"{one.name} {segments} segment{'s' if segments > 1 else ''}", segments=segments)
    return [named, replace(one, name=f"{one.name} k1 {k1} b {b}", bm25=bm25)]


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
    small: list[str] = []
    if kind == "tierdex":
        project = WORKSPACE.parents[2]
        files = [cargo(project, "tierdex-cli", "tierdex"), cargo(project, "tierdex-bench", "tierdex-bench")]
        program = [str(files[0])]
    elif kind == "lucene":
        home, files = java_home(), [WORKSPACE / "lucene/target/tierdex-peer-lucene.jar"]
        maven = ["mvn", "-q", "-B", "-DskipTests", "package"]
        run(maven, WORKSPACE / "lucene", os.environ | {"JAVA_HOME": str(home)})
        tail = ("-cp", f"{files[0]}:{files[0].parent}/dependency/*", "org.tierdex.peer.lucene.Main")
        program, small = ([str(home / "bin/java"), *JAVA, *heap, *tail] for heap in (JAVA_LARGE, JAVA_SMALL))
    elif kind == "pisa":
        python, files = work / "pisa-venv/bin/python", [WORKSPACE / "pisa/peer.py"]
        if not python.exists():
            run(["python3", "-m", "venv", str(work / "pisa-venv")])
        # Does nothing if it is installed.
        run([str(python), "-m", "pip", "install", "-q", PISA])
        program = [str(python), str(files[0])]
    else:
        files = [cargo(WORKSPACE, f"tierdex-peer-{kind}", f"tierdex-peer-{kind}")]
        program = [str(files[0])]
    version = run([*program, "--version" if kind == "tierdex" else "version"]).strip().split("\n")[-1]
    return Engine(kind, version, program, files, small)


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
    """The first of JAVA_HOME, the `java` of the path, and the usual directory that is new enough and has a compiler."""
    on_path = shutil.which("java")
    homes = [Path(os.environ["JAVA_HOME"])] if "JAVA_HOME" in os.environ else []
    homes += [Path(on_path).resolve().parents[1]] if on_path else []
    for home in [*homes, *sorted(Path("/usr/lib/jvm").glob("*"))]:
        if (home / "bin/javac").exists():
            release = re.match(r"javac (\d+)", run([str(home / "bin/javac"), "-version"]))
            if release and int(release[1]) >= JAVA_MIN:
                return home
    raise Failed(f"there is no JDK of release {JAVA_MIN} or later; install one and set JAVA_HOME")


def run(command: Sequence[str], directory: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """The output of a program.

    Raises Failed, in one line, if it cannot be started or fails.
    """
    try:
        done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise Failed(f"cannot run {command[0]}: {error.strerror}; is it installed?") from error
    if done.returncode == 0:
        return done.stdout
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    raise Failed(f"{command[0]} failed: {(errors or lines[-1:] or ['no output'])[0]}")

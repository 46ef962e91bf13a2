//! A script of commits of several writers, with the expected results after each commit.

use super::corpus::{SchemaOptions, TestDocument};
use super::{
    Answer, AnswerOptions, add_document, answer_query, answer_text, index_in_memory, model::Model,
    random::Random,
};
use std::{collections::BTreeSet, path::Path, sync::Arc};
use tierdex::internal::index::check_on;
use tierdex::io::{Disk, FaultDisk, FaultPlan, MemDisk, OpClass};
use tierdex::schema::{Field, Schema, Tokenizer};
use tierdex::{Error, Index, IndexWriter, Merge, OpenMode, Query, WriterOptions};

/// What the writers do, one after the other, and the expected results after each commit.
pub struct WriterScript {
    /// The schema of the last session and of recoveries.
    pub schema: Schema,
    start: StartIndex,
    sessions: Vec<Session>,
    /// Documents that are added after a recovery.
    extra: Vec<TestDocument>,
    /// Expected results of each generation, from that of the start on; and the same with `extra` added.
    expected: Vec<(Answers, Answers)>,
}

/// What is on the disk before the first session; of generation 0 if there is no index.
struct StartIndex {
    disk: MemDisk,
    generation: u64,
    schema: Schema,
    docs: Vec<TestDocument>,
}

/// The results of all queries; `None` if the schema lacks a field of the query.
type Answers = Vec<Option<Answer>>;

struct Session {
    mode: OpenMode,
    schema: Schema,
    commits: Vec<(Vec<TestDocument>, Merge)>,
}

/// How far the script ran.
pub struct ScriptOutcome {
    /// The last acknowledged generation.
    pub acknowledged: u64,
    /// The error that stopped it.
    pub error: Option<Error>,
}

/// The results of many faults or crashes.
#[derive(Debug, Default)]
pub struct FaultCounts {
    pub injected: u64,
    pub crashes: u64,
    /// Number of states of a disk that were checked.
    pub states: u64,
    /// Number of crashes after which the index was the commit after the acknowledged one.
    pub newer: u64,
    pub violations: Vec<String>,
}

impl FaultCounts {
    pub fn add(&mut self, other: FaultCounts) {
        self.injected += other.injected;
        self.crashes += other.crashes;
        self.states += other.states;
        self.newer += other.newer;
        self.violations.extend(other.violations);
    }

    /// The sum, which is printed.
    pub fn sum(of: Vec<FaultCounts>) -> FaultCounts {
        let mut sum = FaultCounts::default();
        of.into_iter().for_each(|counts| sum.add(counts));
        let FaultCounts { injected, crashes, states, newer, .. } = sum;
        println!("injected {injected}, crashes {crashes}, states {states}, newer {newer}");
        sum
    }

    pub fn assert_no_violation(&self) {
        let violations = &self.violations;
        assert!(violations.is_empty(), "{}: {:#?}", violations.len(), &violations[..violations.len().min(5)]);
    }
}

/// Queries, separated by semicolons.
const QUERIES: &str = "\
    all; w0; w0 w1 w2; w1 AND w2; \"w0 w1\"; title:w0; title:\"w1 w0\" w3; +w0 -w1; NOT w0; \
    (w2 OR w3) AND NOT w4; absent; w4 only7; dogs; \"cats and dogs\"; NOT birds w*";

impl WriterScript {
    /// Seven commits of up to `size` documents: appends, merges, a replacement, and a commit without
    /// documents that merges.
    pub fn new(size: usize) -> WriterScript {
        let mut next = 0;
        let mut docs = |count: usize| {
            next += count;
            (next - count..next).map(script_document).collect::<Vec<_>>()
        };
        use Merge::{Keep, One};
        let schema = SchemaOptions::default().schema();
        let session = |mode, commits| Session { mode, schema: schema.clone(), commits };
        let sessions = vec![
            session(OpenMode::New, vec![(docs(size), Keep), (docs(size / 2), Keep)]),
            session(OpenMode::Append, vec![(docs(size / 4), One)]),
            session(OpenMode::Append, vec![(docs(1), Keep), (Vec::new(), One)]),
            session(OpenMode::Replace, vec![(docs(size / 2), Keep)]),
            session(OpenMode::Append, vec![(docs(3), Keep)]),
        ];
        WriterScript::of(StartIndex::none(&schema), sessions, docs(4))
    }

    /// Six commits, between which fields, members and columns are added: documents without a field, documents
    /// with it, a merge of all, another field alone, and documents with that one.
    pub fn with_added_fields(size: usize) -> WriterScript {
        let untitled = |doc: TestDocument| TestDocument { title: String::new(), ..doc };
        let mut docs = (0..).map(script_document);
        let newer = SchemaOptions::default().schema();
        let older = Schema { fields: newer.fields[..1].to_vec(), columns: Vec::new(), ..newer.clone() };
        let mut newest = newer.clone();
        newest.members.push("notes".to_string());
        let (name, members) = ("notes".to_string(), vec!["notes".to_string()]);
        newest.fields.push(Field { name, members, ..newer.fields[1].clone() });
        use Merge::{Keep, One};
        let session = |mode, schema: &Schema, commits| Session { mode, schema: schema.clone(), commits };
        let mut docs = |count| docs.by_ref().take(count).collect::<Vec<_>>();
        let mut without = |count| docs(count).into_iter().map(untitled).collect::<Vec<_>>();
        let first = vec![(without(size), Keep), (without(size / 2), Keep)];
        let sessions = vec![
            session(OpenMode::New, &older, first),
            session(OpenMode::Append, &newer, vec![(docs(size / 4), Keep), (docs(1), One)]),
            session(OpenMode::Append, &newest, vec![(Vec::new(), Keep), (docs(3), Keep)]),
        ];
        WriterScript::of(StartIndex::none(&older), sessions, docs(4))
    }

    /// The index of an older version in a directory: a field is added by a commit that merges all segments or
    /// none, then documents.
    pub fn upgrade(dir: &Path, merge: Merge) -> WriterScript {
        let start = StartIndex::read(dir);
        let mut schema = start.schema.clone();
        schema.fields.push(Field { positions: true, ..Field::new("title", &["notes"]) });
        schema.members.push("notes".to_string());
        let mut docs = (0..).map(|number| TestDocument { title: String::new(), ..script_document(number) });
        let mut docs = |count| docs.by_ref().take(count).collect::<Vec<_>>();
        let commits = vec![(docs(2), merge), (docs(3), Merge::None)];
        let sessions = vec![Session { mode: OpenMode::Append, schema, commits }];
        WriterScript::of(start, sessions, docs(2))
    }

    fn of(start: StartIndex, sessions: Vec<Session>, extra: Vec<TestDocument>) -> WriterScript {
        let schema = sessions.last().expect("there is one").schema.clone();
        let mut script = WriterScript { schema, start, sessions, extra, expected: Vec::new() };
        let answers = |(schema, docs): (Schema, Vec<TestDocument>)| {
            let recovered = answers_of(&script.schema, &[&docs, &*script.extra].concat());
            (answers_of(&schema, &docs), recovered)
        };
        script.expected = script.states().into_iter().map(answers).collect();
        script
    }

    /// The last generation of the script.
    pub fn generations(&self) -> u64 {
        self.start.generation + self.expected.len() as u64 - 1
    }

    /// The disk before the first session.
    pub fn disk(&self) -> MemDisk {
        self.start.disk.snapshot()
    }

    fn expected(&self, generation: u64) -> Option<&(Answers, Answers)> {
        let number = generation.checked_sub(self.start.generation)?;
        self.expected.get(usize::try_from(number).ok()?)
    }

    /// Number of operations of a class in the whole script, without faults.
    pub fn count_operations(&self, class: OpClass) -> u64 {
        let disk = FaultDisk::new(self.disk(), FaultPlan::none());
        let outcome = self.run(&(Arc::new(disk.clone()) as _));
        assert!(outcome.error.is_none() && outcome.acknowledged == self.generations());
        disk.operations(class)
    }

    /// Runs all sessions until an operation fails. A failed writer must reject all further calls.
    pub fn run(&self, disk: &Arc<dyn Disk>) -> ScriptOutcome {
        let mut outcome = ScriptOutcome { acknowledged: self.start.generation, error: None };
        for session in &self.sessions {
            if let Err(error) = self.session(disk, session, &mut outcome.acknowledged) {
                outcome.error = Some(error);
                break;
            }
        }
        outcome
    }

    fn session(&self, disk: &Arc<dyn Disk>, of: &Session, acknowledged: &mut u64) -> tierdex::Result<()> {
        let mut writer =
            IndexWriter::open(disk.clone(), of.schema.clone(), of.mode, WriterOptions::default())?;
        for (docs, merge) in &of.commits {
            match add_all(&mut writer, docs).and_then(|()| writer.commit(*merge)) {
                Ok(generation) => *acknowledged = generation,
                Err(error) => {
                    let again = writer.commit(Merge::None).expect_err("a writer that failed is poisoned");
                    assert!(again.to_string().contains("open it again"), "{again}");
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Opens the index after a crash or fault, and checks that it is the last acknowledged commit or the next
    /// one, and complete. Returns the generation of the commit.
    pub fn verify(&self, disk: &MemDisk, acknowledged: u64) -> Result<u64, String> {
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let generation = match Index::open_on(shared) {
            Ok(index) => {
                let generation = index.manifest().generation;
                let expected = self.expected(generation);
                let (expected, _) = expected.ok_or_else(|| format!("generation {generation}"))?;
                let compared = compare_answers(&index, expected);
                compared.map_err(|what| format!("generation {generation}: {what}"))?;
                generation
            }
            Err(Error::Usage(message)) if message.contains("holds no tierdex index") => 0,
            Err(error) => return Err(format!("after generation {acknowledged}: {error}")),
        };
        if !(acknowledged..=acknowledged + 1).contains(&generation) {
            return Err(format!(
                "generation {generation} is the newest after {acknowledged} was acknowledged"
            ));
        }
        if generation > 0 {
            let report = check_on(disk).map_err(|error| error.to_string())?;
            if let Some(problem) = report.problems.first() {
                return Err(format!("check of generation {generation}: {problem}"));
            }
        }
        Ok(generation)
    }

    /// A writer opens the disk, removes leftover files, and commits.
    pub fn recover(&self, disk: &Arc<dyn Disk>, generation: u64) -> tierdex::Result<u64> {
        let mut writer = self.recovering_writer(disk, generation)?;
        add_all(&mut writer, &self.extra)?;
        let generation = writer.commit(Merge::None)?;
        check_no_orphans(disk.as_ref(), Some(&Index::open_on(disk.clone())?))?;
        Ok(generation)
    }

    /// Opens a writer after a crash. It removes the files that a first writer left; if these are sealed
    /// segments, only a writer that replaces the index can be opened.
    fn recovering_writer(&self, disk: &Arc<dyn Disk>, generation: u64) -> tierdex::Result<IndexWriter> {
        let open =
            |mode| IndexWriter::open(disk.clone(), self.schema.clone(), mode, WriterOptions::default());
        if generation > 0 {
            let writer = open(OpenMode::Append)?;
            check_no_orphans(disk.as_ref(), Some(&Index::open_on(disk.clone())?))?;
            return Ok(writer);
        }
        let before = disk.list()?;
        match open(OpenMode::New) {
            Ok(writer) => {
                check_no_orphans(disk.as_ref(), None)?;
                Ok(writer)
            }
            Err(Error::Failed(message)) if message.contains("no manifest") => {
                let after = disk.list()?;
                match before.iter().find(|name| *name != "write.lock" && !after.contains(name)) {
                    Some(name) => Err(Error::Usage(format!("{name} was removed"))),
                    None => open(OpenMode::Replace),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Checks the index after [`WriterScript::recover`] from `generation`.
    pub fn verify_recovered(&self, disk: &MemDisk, generation: u64) -> Result<(), String> {
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let index = Index::open_on(shared).map_err(|error| format!("after recovery: {error}"))?;
        if index.manifest().generation != generation + 1 {
            return Err(format!("generation {} after {generation}", index.manifest().generation));
        }
        let expected = self.expected(generation).ok_or_else(|| format!("generation {generation}"))?;
        compare_answers(&index, &expected.1)?;
        match check_on(disk).map_err(|error| error.to_string())?.problems.first() {
            Some(problem) => Err(format!("check after recovery: {problem}")),
            None => Ok(()),
        }
    }

    /// Checks the index after a crash during a recovery from `generation`: it must be the commit before the
    /// recovery or the one after it, and complete.
    pub fn verify_half_recovered(&self, disk: &MemDisk, generation: u64) -> Result<(), String> {
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let recovered =
            Index::open_on(shared).is_ok_and(|index| index.manifest().generation == generation + 1);
        if recovered {
            return self.verify_recovered(disk, generation);
        }
        match self.verify(disk, generation)? {
            found if found == generation => Ok(()),
            found => Err(format!("generation {found} after {generation}")),
        }
    }

    /// Schema and documents of each generation, from that of the start on. A commit without documents makes a
    /// generation too, because it merges or adds a field.
    fn states(&self) -> Vec<(Schema, Vec<TestDocument>)> {
        let mut states = vec![(self.start.schema.clone(), self.start.docs.clone())];
        for session in &self.sessions {
            let mut docs = match session.mode {
                OpenMode::Replace => Vec::new(),
                _ => states.last().expect("there is a first").1.clone(),
            };
            for (added, _) in &session.commits {
                docs.extend(added.iter().cloned());
                states.push((session.schema.clone(), docs.clone()));
            }
        }
        states
    }
}

impl StartIndex {
    /// An empty disk.
    fn none(schema: &Schema) -> StartIndex {
        StartIndex { disk: MemDisk::new(), generation: 0, schema: schema.clone(), docs: Vec::new() }
    }

    /// The files of a directory, which are durable.
    fn read(dir: &Path) -> StartIndex {
        let disk = MemDisk::new();
        for file in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let mut copy = disk.create(file.file_name().to_str().unwrap()).unwrap();
            copy.append(&std::fs::read(file.path()).unwrap()).unwrap();
            copy.sync().unwrap();
        }
        disk.sync_dir().unwrap();
        let index = Index::open_on(Arc::new(disk.clone())).unwrap();
        let searcher = index.searcher();
        let doc = |number: u32| {
            let stored = searcher.stored(number).unwrap().unwrap();
            TestDocument::new(searcher.id(number).unwrap(), stored.title(), stored.value("text"))
        };
        let docs = (0..index.documents() as u32).map(doc).collect();
        StartIndex { disk, generation: index.manifest().generation, schema: index.schema().clone(), docs }
    }
}

/// The results of the model; of a new index if the model lacks the tokenizer.
fn answers_of(schema: &Schema, docs: &[TestDocument]) -> Answers {
    let has_model = schema.fields[0].analysis.tokenizer != Tokenizer::Unicode;
    let model = has_model.then(|| Model::new(schema, docs));
    let index = (!has_model).then(|| index_in_memory(schema, docs, &[]));
    let answer = |(number, text): (usize, &str)| {
        let query = Query::parse(text, schema).ok()?;
        match (&model, &index) {
            (Some(model), _) => Some(model.answer(&query, script_options(number))),
            (_, index) => Some(answer_query(index.as_ref()?, &query, script_options(number)).unwrap()),
        }
    };
    QUERIES.split("; ").enumerate().map(answer).collect()
}

/// A document of few different words, so that the queries have matches in every generation. Title and text
/// have up to two values.
fn script_document(number: usize) -> TestDocument {
    let mut random = Random::new(number as u64);
    let mut words = |count: usize| {
        let words = (0..count).map(|_| format!("w{}", random.skewed(9)));
        words.collect::<Vec<_>>().join(" ").replacen(' ', "|", 1)
    };
    let title = words(1 + number % 3);
    let text = format!("all {} only{number}", words(3 + number % 4));
    TestDocument { id: format!("id{number}"), title, text }
}

/// Options of the query with this number; ids and texts are checked only with the second query.
fn script_options(number: usize) -> AnswerOptions {
    AnswerOptions { shown: if number == 1 { 3 } else { 0 }, ..AnswerOptions::default() }
}

fn add_all(writer: &mut IndexWriter, docs: &[TestDocument]) -> tierdex::Result<()> {
    docs.iter().try_for_each(|doc| add_document(writer, doc))
}

fn compare_answers(index: &Index, expected: &Answers) -> Result<(), String> {
    for (number, (text, expected)) in QUERIES.split("; ").zip(expected).enumerate() {
        let Some(expected) = expected else { continue };
        let found = answer_text(index, text, script_options(number))
            .map_err(|error| format!("query {text}: {error}"))?;
        if found != *expected {
            return Err(format!("query {text}: {found:?}, not {expected:?}"));
        }
    }
    Ok(())
}

/// Checks that the disk contains only the files of the open commit and the lock of an open writer.
pub fn check_no_orphans(disk: &dyn Disk, index: Option<&Index>) -> tierdex::Result<()> {
    let mut named = BTreeSet::new();
    if let Some(manifest) = index.map(Index::manifest) {
        named.extend(manifest.file_names());
    }
    let found: BTreeSet<String> = disk.list()?.into_iter().filter(|name| name != "write.lock").collect();
    match found.symmetric_difference(&named).next() {
        Some(name) => Err(Error::Usage(format!("{name} is an orphan, or missing"))),
        None => Ok(()),
    }
}

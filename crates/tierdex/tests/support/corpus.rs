//! Random documents that depend on a seed, and schemas.

use super::random::Random;
use tierdex::DocumentRef;
use tierdex::codec::Codec;
use tierdex::schema::{
    Analysis, Column, ColumnType, ColumnValue, Field, NormKind, Schema, Stored, Tokenizer,
};

/// One document. A `|` in a title or text separates two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestDocument {
    pub id: String,
    pub title: String,
    pub text: String,
}

impl TestDocument {
    /// A document.
    pub fn new(id: impl ToString, title: &str, text: impl Into<String>) -> TestDocument {
        TestDocument { id: id.to_string(), title: title.to_string(), text: text.into() }
    }

    /// Names and values of the members.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        let titles = self.title.split('|').map(|value| ("title", value));
        titles.chain(self.text.split('|').map(|value| ("text", value)))
    }

    /// Values of the columns of [`test_columns`], if the schema has these. A document without a title has
    /// none, as if it were older than the columns.
    pub fn columns(&self, schema: &Schema) -> Vec<(usize, ColumnValue)> {
        let bytes = self.title.len() as u64;
        let words = self.title.split(' ').filter(|word| !word.is_empty());
        let values = if bytes == 0 {
            Vec::new()
        } else {
            let days = (bytes % 8 == 4).then(|| 86_400_000_000 * bytes as i64);
            let days = days.map(|time| ("day", ColumnValue::Date(time)));
            let words = words.map(|word| ("words", ColumnValue::I64(40 - 3 * word.len() as i64)));
            [("bytes", ColumnValue::U64(bytes))].into_iter().chain(words).chain(days).collect()
        };
        let numbered = values.into_iter().map(|(name, value)| Some((schema.column(name)?, value)));
        numbered.flatten().collect()
    }

    /// Calls `add` with the document as the batches of a writer take it. Its members are `title` and `text`,
    /// each with one value.
    pub fn with_numbers<T>(&self, schema: &Schema, add: impl FnOnce(DocumentRef<'_>) -> T) -> T {
        let values = [(0, &*self.title), (1, &*self.text)];
        let columns = self.columns(schema);
        add(DocumentRef { id: &self.id, values: &values, columns: &columns, ..DocumentRef::default() })
    }

    /// Documents without titles, with their numbers as ids.
    pub fn of_texts<T: ToString>(texts: impl IntoIterator<Item = T>) -> Vec<TestDocument> {
        (0..)
            .zip(texts)
            .map(|(number, text): (u32, T)| TestDocument::new(number, "", text.to_string()))
            .collect()
    }
}

/// Number of words of random documents; [`vocabulary_word`] returns them in order of decreasing frequency.
pub const VOCABULARY_WORDS: usize = 120;

/// A word in every document that is not empty.
pub const WORD_EVERYWHERE: &str = "all";

/// Words that some schemas drop.
pub const STOP_WORDS: [&str; 3] = ["of", "the", "w3"];

const SEPARATORS: [&str; 6] = [" ", " ", " ", ", ", "-", "\n"];

/// A word of the vocabulary in lower case.
pub fn vocabulary_word(rank: usize) -> String {
    match rank % 5 {
        1 => format!("über{rank}"),
        2 => format!("prefix{rank}"),
        _ => format!("w{rank}"),
    }
}

/// Random documents whose words have very different frequencies: some are empty, some equal to an earlier
/// one, some long.
pub fn random_documents(seed: u64, count: usize) -> Vec<TestDocument> {
    let mut random = Random::new(seed);
    let mut docs: Vec<TestDocument> = Vec::with_capacity(count);
    for number in 0..count {
        let mut doc = match () {
            () if random.one_in(15) && number > 0 => docs[random.below(number)].clone(),
            () if random.one_in(15) => TestDocument::new("", "", ""),
            () => random_document(number, &mut random),
        };
        doc.id = format!("doc-{number}");
        docs.push(doc);
    }
    docs
}

fn random_document(number: usize, random: &mut Random) -> TestDocument {
    let title_words = random.below(5);
    let text_words = match random.below(40) {
        0 => 100 + random.below(300),
        1..=5 => 30 + random.below(40),
        _ => random.below(20),
    };
    let title = random_words(title_words, random);
    let mut text = format!("All {}", random_words(text_words, random));
    if random.one_in(8) {
        text.push_str(&format!(" only{number}"));
    }
    TestDocument { id: String::new(), title, text }
}

fn random_words(count: usize, random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..count {
        match random.below(20) {
            0 => text.push_str("The"),
            1 => text.push_str("of"),
            2 => text.push_str(&vocabulary_word(random.skewed(VOCABULARY_WORDS)).to_uppercase()),
            _ => text.push_str(&vocabulary_word(random.skewed(VOCABULARY_WORDS))),
        }
        text.push_str(random.pick::<&str>(&SEPARATORS));
    }
    text
}

/// Factors of document lengths in each eighth of the collection, so that the average lengths of segments
/// differ.
const PART_LENGTHS: [usize; 8] = [3, 1, 12, 4, 30, 1, 2, 6];

/// Random documents. Some words are frequent in some ranges of documents, some occur only in one range, some
/// in few documents; some documents are long, equal to an earlier one, or empty.
pub fn random_documents_in_bursts(seed: u64, count: usize) -> Vec<TestDocument> {
    let mut random = Random::new(seed);
    let mut docs: Vec<TestDocument> = Vec::with_capacity(count);
    let mut words = Vec::new();
    let names: Vec<String> = (0..VOCABULARY_WORDS).map(vocabulary_word).collect();
    for number in 0..count {
        let (part, burst) = (number * PART_LENGTHS.len() / count, number * 60 / count);
        let mut doc = TestDocument::new(number, "", "");
        if random.one_in(9) && number > 0 {
            let earlier = &docs[number - 1 - random.below(number.min(3000))];
            (doc.title, doc.text) = (earlier.title.clone(), earlier.text.clone());
        } else if !random.one_in(50) {
            words.clear();
            words.push(WORD_EVERYWHERE);
            for (rank, name) in names.iter().enumerate() {
                let wanted = (random.next() >> 40) as f64 / (1u64 << 24) as f64;
                if wanted < word_probability(rank, burst) {
                    let times = if random.one_in(20) { 1 + random.skewed(12) } else { 1 };
                    words.extend(std::iter::repeat_n(name.as_str(), times));
                }
            }
            // Words are in random order, or mostly in the order of their ranks.
            let swaps = if random.one_in(2) { words.len() } else { 1 };
            for _ in 0..swaps {
                let (a, b) = (random.below(words.len()), random.below(words.len()));
                words.swap(a, b);
            }
            doc.text = words.join(" ");
            if random.one_in(100) {
                doc.text.push_str(&format!(" only{}", random.below(300)));
            }
            doc.text.push_str(&" filler".repeat(random.skewed(4 * PART_LENGTHS[part])));
            if random.one_in(4) {
                doc.title = format!("{} {}", names[random.skewed(VOCABULARY_WORDS)], names[random.below(3)]);
            }
        }
        docs.push(doc);
    }
    docs
}

/// The probability that a document of this sixtieth (`burst`) of the collection contains a word.
fn word_probability(rank: usize, burst: usize) -> f64 {
    let zipf = (1.0 / (rank as f64 + 1.0).powf(1.1)).min(0.97);
    match rank {
        // Bursts: nearly absent, or frequent.
        _ if rank % 4 == 1 => {
            if (burst + rank).is_multiple_of(7) {
                (6.0 * zipf).min(0.8)
            } else {
                zipf / 500.0
            }
        }
        // Dense in a part, absent elsewhere.
        _ if rank % 9 == 5 => {
            if burst / 3 == rank % 20 {
                0.95
            } else {
                0.0
            }
        }
        // In fewer documents than a block has.
        _ if rank > 100 => 0.0008,
        _ => zipf,
    }
}

/// Columns of which most documents have a value, some or few, and one with several values.
pub fn test_columns() -> Vec<Column> {
    let words = Column { multi: true, ..Column::new("words", ColumnType::I64) };
    vec![Column::new("bytes", ColumnType::U64), words, Column::new("day", ColumnType::Date)]
}

/// What tests vary in a schema.
#[derive(Clone, Copy, Debug)]
pub struct SchemaOptions {
    pub codec: Codec,
    pub positions: bool,
    pub norms: NormKind,
    pub stop_words: bool,
    pub tokenizer: Tokenizer,
    pub title: bool,
    pub stored: bool,
    /// Whether there are the columns of [`test_columns`].
    pub columns: bool,
}

impl Default for SchemaOptions {
    fn default() -> SchemaOptions {
        SchemaOptions {
            codec: Codec::Auto,
            positions: true,
            norms: NormKind::Byte,
            stop_words: false,
            tokenizer: Tokenizer::Alphanumeric,
            title: true,
            stored: true,
            columns: true,
        }
    }
}

impl SchemaOptions {
    /// A field `text`, and an optional field `title` with the other kind of norms.
    pub fn schema(&self) -> Schema {
        let members: &[&str] = if self.title { &["text"] } else { &["title", "text"] };
        let mut fields = vec![Field { norms: self.norms, ..self.field("text", members) }];
        if self.title {
            let norms = if self.norms == NormKind::Byte { NormKind::Exact } else { NormKind::Byte };
            fields.push(Field { norms, ..self.field("title", &["title"]) });
        }
        let stored = if self.stored { Stored::Members } else { Stored::Nothing };
        let columns = if self.columns { test_columns() } else { Vec::new() };
        Schema { stored, columns, ..Schema::of(fields) }
    }

    /// The default options with a single field.
    pub fn one_field() -> SchemaOptions {
        SchemaOptions { title: false, ..SchemaOptions::default() }
    }

    fn field(&self, name: &str, members: &[&str]) -> Field {
        let words = if self.stop_words { STOP_WORDS.map(str::to_string).to_vec() } else { Vec::new() };
        Field {
            analysis: Analysis { tokenizer: self.tokenizer, stop_words: words, ..Analysis::default() },
            positions: self.positions,
            doc_codec: self.codec,
            freq_codec: self.codec.plain(),
            ..Field::new(name, members)
        }
    }
}

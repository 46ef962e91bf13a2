//! The schema of an index: its text fields, each with its own analysis, dictionary, postings and norms, and
//! its columns.

mod column;
mod date;
mod field;
mod format;
mod messages;
mod synonyms;

use crate::{Error, Result, limits};
pub use column::{Column, ColumnType, ColumnValue};
pub(crate) use date::parse_time;
pub use field::{Analysis, Field, Language, NormKind, Tokenizer};
use messages::{Setting, differences_of};
pub(crate) use messages::{list_names, shorten};
pub use synonyms::Synonyms;
pub(crate) use synonyms::{Alternatives, AlternativesByWords};
pub use tierdex_codec::Codec;

/// The named parts of documents, the text fields that index them, columns of typed values, and what is stored
/// for display.
///
/// A document has an id and *members*, each with no value, one or several: the title, the text, the lines of
/// an address. A field indexes the values of one member or of several; a member may be in several fields.
///
/// ```
/// use tierdex::schema::{Field, Language, Schema};
///
/// let mut body = Field::new("body", &["body"]);
/// body.positions = true;
/// body.analysis.stemmer = Some(Language::English);
/// let mut schema = Schema::of(vec![body, Field::new("subject", &["subject"])]);
/// schema.title = Some("subject".to_string());
/// schema.validate()?;
/// # Ok::<(), tierdex::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The names of the members of documents, in the order of their numbers: those that fields index, and
    /// others that are only stored.
    pub members: Vec<String>,
    /// The member that is shown as the title of a hit.
    pub title: Option<String>,
    /// Fields in the order of their numbers; queries search the first one by default.
    pub fields: Vec<Field>,
    /// Columns in the order of their numbers.
    pub columns: Vec<Column>,
    /// What is stored of a document, so that it can be shown ([`Snapshot::stored`](crate::Snapshot::stored)).
    pub stored: Stored,
}

/// What is stored of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stored {
    /// Nothing: hits have ids only.
    Nothing,
    /// The members of the schema.
    Members,
    /// The members of the schema, and a text of the other members: [`DocumentRef::others`].
    ///
    /// [`DocumentRef::others`]: crate::DocumentRef::others
    All,
}

impl Stored {
    /// Name: `nothing`, `members` or `all`.
    pub fn name(self) -> &'static str {
        match self {
            Stored::Nothing => "nothing",
            Stored::Members => "members",
            Stored::All => "all",
        }
    }
}

impl Default for Schema {
    /// One field, `text`, of the members `title` and `text`, which are stored.
    fn default() -> Schema {
        Schema::of(vec![Field::new("text", &["title", "text"])])
    }
}

impl Schema {
    /// A schema with these fields. Its members are `title`, which is shown as the title of hits, and those of
    /// the fields; all are stored.
    pub fn of(fields: Vec<Field>) -> Schema {
        Schema::new(&[], Some("title"), fields)
    }

    /// A schema with these fields, in which the member `title` is shown as the title of hits. Its members are
    /// in this order: `members`, the title, those of the fields; all are stored.
    ///
    /// `members` are needed if some are stored that are neither indexed nor the title, and if others have
    /// been numbered already ([`Schema::first_members`]).
    pub fn new(members: &[String], title: Option<&str>, fields: Vec<Field>) -> Schema {
        let title = title.map(str::to_string);
        let members = number_members(members, title.as_ref(), &fields);
        Schema { members, title, fields, columns: Vec::new(), stored: Stored::Members }
    }

    /// The first members of this schema, without those that [`Schema::new`] adds behind them: none, unless
    /// fields were added to the schema, or it has members that are only stored.
    pub fn first_members(&self) -> &[String] {
        let follow =
            |first: &&[String]| number_members(first, self.title.as_ref(), &self.fields) == self.members;
        let firsts = (0..self.members.len()).map(|count| &self.members[..count]);
        firsts.into_iter().find(follow).unwrap_or(&self.members)
    }

    /// This schema with more fields, whose members are numbered behind those that it has. A field takes the
    /// place of one that has its name: the schema is then none to which an index can be extended, and the
    /// error names the settings that differ.
    pub fn with_fields(&self, fields: Vec<Field>) -> Schema {
        let mut all = self.fields.clone();
        for field in fields {
            match self.field(&field.name) {
                Some(number) => all[number] = field,
                None => all.push(field),
            }
        }
        let columns = self.columns.clone();
        Schema { stored: self.stored, columns, ..Schema::new(&self.members, self.title.as_deref(), all) }
    }

    /// This schema with more columns. A column takes the place of one that has its name, as a field does in
    /// [`Schema::with_fields`].
    #[must_use]
    pub fn with_columns(mut self, columns: Vec<Column>) -> Schema {
        for column in columns {
            match self.column(&column.name) {
                Some(number) => self.columns[number] = column,
                None => self.columns.push(column),
            }
        }
        self
    }

    /// The number of the column with this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The number of the column with this name.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is none; the message lists the columns.
    pub fn column_named(&self, name: &str) -> Result<usize> {
        self.column(name).ok_or_else(|| {
            let names: Vec<_> = self.columns.iter().map(|column| column.name.clone()).collect();
            let has = if names.is_empty() { "none".to_string() } else { list_names(&names, ", ") };
            Error::Usage(format!("the schema has no column `{name}`; it has {has}"))
        })
    }

    /// The number of the member with this name.
    pub fn member(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|member| member == name)
    }

    /// The number of the member with this name.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is none; the message lists the members.
    pub fn member_named(&self, name: &str) -> Result<usize> {
        self.member(name).ok_or_else(|| {
            let members = list_names(&self.members, ", ");
            Error::Usage(format!("the schema has no member `{name}`; it has {members}"))
        })
    }

    /// The numbers of the members of a field, in the order in which it indexes them.
    pub(crate) fn members_of(&self, field: &Field) -> Vec<usize> {
        field.members.iter().filter_map(|name| self.member(name)).collect()
    }

    /// Number of members that are stored, with one for what documents have beside the members of the schema.
    pub(crate) fn stored_members(&self) -> usize {
        self.members.len() + usize::from(self.stored == Stored::All)
    }

    /// Whether documents of this schema can be added to an index of the schema `older`: it begins with the
    /// fields, members and columns of that one, and stores the same. Synonyms may differ.
    pub(crate) fn extends(&self, older: &Schema) -> bool {
        older.fields.len() <= self.fields.len()
            && self.fields.iter().zip(&older.fields).all(|(field, older)| field.indexes_as(older))
            && self.members.starts_with(&older.members)
            && self.columns.starts_with(&older.columns)
            && (&self.title, self.stored) == (&older.title, older.stored)
    }

    /// Checks the schema.
    ///
    /// # Errors
    /// [`Error::Usage`] or [`Error::TooLarge`] with the reason why it is invalid.
    pub fn validate(&self) -> Result<()> {
        if self.fields.is_empty() || self.fields.len() > limits::FIELDS_MAX {
            return Err(Error::Usage(format!("a schema has 1 to {} fields", limits::FIELDS_MAX)));
        }
        for (i, field) in self.fields.iter().enumerate() {
            field.validate()?;
            if self.fields[..i].iter().any(|other| other.name == field.name) {
                return Err(Error::Usage(format!("field `{}` is named twice", field.name)));
            }
            if field.members.is_empty() {
                return Err(Error::Usage(format!("field `{}` has no members", field.name)));
            }
            for (at, member) in field.members.iter().enumerate() {
                if self.member(member).is_none() || field.members[..at].contains(member) {
                    let what = if self.member(member).is_none() { "unknown" } else { "named twice" };
                    return Err(Error::Usage(format!(
                        "member `{member}` of field `{}` is {what}",
                        field.name
                    )));
                }
            }
        }
        self.validate_columns()?;
        self.validate_members()
    }

    fn validate_columns(&self) -> Result<()> {
        if self.columns.len() > limits::COLUMNS_MAX {
            return Err(Error::Usage(format!("a schema has at most {} columns", limits::COLUMNS_MAX)));
        }
        for (i, column) in self.columns.iter().enumerate() {
            column.validate()?;
            let is_field = self.field(&column.name).is_some();
            if is_field || self.columns[..i].iter().any(|other| other.name == column.name) {
                let what = if is_field { "has the name of a field" } else { "is named twice" };
                return Err(Error::Usage(format!("column `{}` {what}", column.name)));
            }
        }
        Ok(())
    }

    fn validate_members(&self) -> Result<()> {
        if self.members.len() > limits::MEMBERS_MAX {
            return Err(Error::Usage(format!("a schema has at most {} members", limits::MEMBERS_MAX)));
        }
        for (i, member) in self.members.iter().enumerate() {
            let is_valid_name = (1..=limits::MEMBER_NAME_BYTES_MAX).contains(&member.len())
                && !member.chars().any(char::is_control);
            if !is_valid_name {
                return Err(Error::Usage(format!(
                    "member name {member:?} is not 1 to {} bytes without control characters",
                    limits::MEMBER_NAME_BYTES_MAX
                )));
            }
            if self.members[..i].contains(member) {
                return Err(Error::Usage(format!("member `{member}` is named twice")));
            }
        }
        match &self.title {
            Some(title) if self.member(title).is_none() => {
                Err(Error::Usage(format!("the title, `{title}`, is no member of the schema")))
            }
            _ => Ok(()),
        }
    }

    /// The number of the field with this name.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The settings in which `other` differs, but for synonyms, which can be changed: first those of the
    /// index, then those of each field and column that both have, for a message such as "field text:
    /// positions: no, here yes; stemmer: none, here english".
    #[doc(hidden)]
    pub fn differences(&self, other: &Schema) -> String {
        let mut differ = differences_of(self.settings(), other.settings());
        for (field, number) in self.fields.iter().filter_map(|field| Some((field, other.field(&field.name)?)))
        {
            let of_field = differences_of(field.settings(), other.fields[number].settings());
            if !of_field.is_empty() {
                differ.push(format!("field {}: {}", field.name, of_field.join("; ")));
            }
        }
        for (column, number) in
            self.columns.iter().filter_map(|column| Some((column, other.column(&column.name)?)))
        {
            let of_column = differences_of(column.settings(), other.columns[number].settings());
            if !of_column.is_empty() {
                differ.push(format!("column {}: {}", column.name, of_column.join("; ")));
            }
        }
        differ.join("; ")
    }

    /// The settings of the index, with the names of its fields and columns.
    fn settings(&self) -> [Setting; 5] {
        let fields: Vec<_> = self.fields.iter().map(|field| field.name.clone()).collect();
        let columns: Vec<_> = self.columns.iter().map(|column| column.name.clone()).collect();
        [
            Setting::new("stored", self.stored.name()),
            Setting::new("title", self.title.as_deref().unwrap_or("none")),
            Setting::of_names("members", &self.members),
            Setting::of_names("fields", &fields),
            Setting::of_names("columns", &columns),
        ]
    }
}

/// The members of a schema in the order of their numbers: `first`, the title, those of the fields.
fn number_members(first: &[String], title: Option<&String>, fields: &[Field]) -> Vec<String> {
    let mut members = first.to_vec();
    for member in title.into_iter().chain(fields.iter().flat_map(|field| &field.members)) {
        if !members.contains(member) {
            members.push(member.clone());
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::ByteReader;

    #[test]
    fn schemas_round_trip() {
        let mut title = Field::new("title", &["title"]);
        title.analysis = Analysis {
            tokenizer: Tokenizer::Whitespace,
            fold_accents: true,
            stop_words: vec!["a".into(), "the".into()],
            stemmer: Some(Language::Finnish),
        };
        title.norms = NormKind::Exact;
        title.synonyms = Synonyms::parse("a, b\n# none\n\nc => d").unwrap();
        assert_eq!(title.synonyms.rules(), ["a, b", "c => d"]);
        title.positions = true;
        let mut schema = Schema::of(vec![Field::new("text", &["text"]), title]);
        schema.stored = Stored::All;
        schema.columns = ColumnType::ALL.map(|of| Column::new(of.name(), of)).into();
        schema.columns[1].multi = true;
        schema.columns[4].member = "published.at".to_string();
        let mut out = Vec::new();
        schema.write(&mut out);
        let mut view = ByteReader::new("m", 0, &out);
        assert_eq!(Schema::read(&mut view, 9).unwrap(), schema);
        view.finish().unwrap();
        for cut in 0..out.len() {
            assert!(Schema::read(&mut ByteReader::new("m", 0, &out[..cut]), 9).is_err());
        }
    }

    #[test]
    fn columns_are_added_behind_others_and_do_not_change() {
        let with = |columns: &[Column]| Schema { columns: columns.to_vec(), ..Schema::default() };
        let (year, price) = (Column::new("year", ColumnType::I64), Column::new("price", ColumnType::F64));
        let (one, two) = (with(std::slice::from_ref(&year)), with(&[year.clone(), price.clone()]));
        assert!(two.extends(&one) && one.extends(&Schema::default()) && !one.extends(&two));
        assert!(!with(&[price, year.clone()]).extends(&one));
        assert_eq!(one.clone().with_columns(two.columns.clone()), two);
        let multi = with(&[Column { multi: true, ..year.clone() }]);
        assert!(!multi.extends(&one));
        assert_eq!(one.differences(&multi), "column year: multi-valued: no, here yes");
        assert_eq!(one.differences(&two), "columns: year, here year, price");
        let message = two.column_named("date").unwrap_err().to_string();
        assert_eq!(message, "the schema has no column `date`; it has year, price");
        let rejected = [
            (vec![year.clone(), year.clone()], "column `year` is named twice"),
            (vec![Column::new("text", ColumnType::U64)], "column `text` has the name of a field"),
            (vec![Column::new("a b", ColumnType::U64)], "field name `a b` is not"),
            (vec![Column { member: String::new(), ..year }], "the member of column `year`"),
        ];
        for (columns, expected) in rejected {
            let message = with(&columns).validate().unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn schemas_of_version_6_have_titles_and_texts() {
        let field = |name: &str, source: u8| {
            let mut out = vec![name.len() as u8];
            out.extend(name.as_bytes());
            // Source, positions, norms, codecs, tokenizer, accents, stemmer, stop words.
            out.extend([source, 0, 1, Codec::Auto.id(), Codec::Pfor256.id(), 2, 0, 0, 0]);
            out
        };
        let bytes = [vec![1, 3], field("all", 2), field("text", 1), field("title", 0)].concat();
        let fields = [("all", &["title", "text"][..]), ("text", &["text"]), ("title", &["title"])];
        let expected = Schema::of(fields.map(|(name, members)| Field::new(name, members)).into());
        assert_eq!(Schema::read(&mut ByteReader::new("m", 0, &bytes), 6).unwrap(), expected);
    }

    #[test]
    fn differences_list_the_settings() {
        let (ours, mut theirs) = (Schema::default(), Schema::default());
        assert_eq!(ours.differences(&theirs), "");
        theirs.fields[0].positions = true;
        theirs.fields[0].analysis.stemmer = Some(Language::English);
        let expected = "field text: positions: no, here yes; stemmer: none, here english";
        assert_eq!(ours.differences(&theirs), expected);
        theirs = Schema::default();
        theirs.fields[0].analysis.stop_words = (100..200).map(|word| format!("word{word}")).collect();
        assert!(ours.differences(&theirs).starts_with("field text: stop words: 0, here 100 word100 word101"));
        assert!(ours.differences(&theirs).len() < 90);
        theirs.fields[0] = Field::new("title", &["title"]);
        assert_eq!(ours.differences(&theirs), "fields: text, here title");
        theirs = Schema::of(vec![Field::new("text", &["title", "text"]), Field::new("from", &["sender"])]);
        assert!(theirs.extends(&ours) && !ours.extends(&theirs));
        assert!(
            ours.differences(&theirs).starts_with("members: title, text, here title, text, sender; fields: ")
        );
        // The settings of the field that both have are compared, wherever it is.
        theirs.fields.rotate_left(1);
        theirs.fields[1].norms = NormKind::Exact;
        assert!(ours.differences(&theirs).ends_with("; field text: norms: byte, here exact"));
    }

    #[test]
    fn long_lists_of_names_are_cut_in_messages() {
        let names: Vec<String> = (0..200).map(|number| format!("member{number}")).collect();
        let schema = |count: usize| {
            let members: Vec<&str> = names[..count].iter().map(String::as_str).collect();
            Schema::of(vec![Field::new("text", &members)])
        };
        let message = schema(200).member_named("absent").unwrap_err().to_string();
        assert!(message.contains("it has title, member0, ") && message.contains("member8 and 191 more"));
        let message = schema(200).differences(&schema(199));
        assert!(message.contains("member8 and 191 more, here title") && message.contains("and 190 more"));
        assert!(message.len() < 1000, "{message}");
    }

    #[test]
    fn members_follow_from_the_title_and_the_fields() {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let people = || Field::new("people", &["from", "to"]);
        let schema = Schema::new(&[], Some("subject"), vec![people(), Field::new("to", &["to"])]);
        assert_eq!(schema.members, names(&["subject", "from", "to"]));
        assert!(schema.first_members().is_empty() && Schema::default().first_members().is_empty());
        assert_eq!(Schema::new(&[], None, vec![people()]).members, names(&["from", "to"]));

        let kept = Schema::new(&names(&["date"]), Some("subject"), vec![people()]);
        assert_eq!(kept.members, names(&["date", "subject", "from", "to"]));
        assert_eq!(kept.first_members(), names(&["date"]));
        let added = schema.with_fields(vec![Field::new("body", &["text", "from"])]);
        assert_eq!(added.members, names(&["subject", "from", "to", "text"]));
        assert!(added.extends(&schema) && added.first_members().is_empty());
        let added = Schema { stored: Stored::All, ..kept }.with_fields(vec![Field::new("body", &["text"])]);
        assert_eq!((added.members.len(), added.stored), (5, Stored::All));
        assert_eq!(
            Schema::new(added.first_members(), Some("subject"), added.fields.clone()).members,
            added.members
        );

        let mut changed = people();
        changed.positions = true;
        let changed = schema.with_fields(vec![changed]);
        assert_eq!(schema.differences(&changed), "field people: positions: no, here yes");
        let twice = schema.with_fields(vec![Field::new("a", &["a"]), Field::new("a", &["a"])]);
        assert!(twice.validate().is_err_and(|error| error.to_string().contains("field `a` is named twice")));
    }

    #[test]
    fn invalid_schemas_are_rejected() {
        let mut schema = Schema::default();
        schema.fields[0].freq_codec = Codec::VByteDelta;
        assert!(schema.validate().unwrap_err().to_string().contains("vbyte"));
        schema = Schema::default();
        schema.fields.push(schema.fields[0].clone());
        assert!(schema.validate().unwrap_err().to_string().contains("twice"));
        schema.fields[1].name = "no blanks".into();
        assert!(schema.validate().is_err());
        type Change = fn(&mut Schema);
        let changes: [(Change, &str); 6] = [
            (|schema| schema.fields[0].members.clear(), "field `text` has no members"),
            (|schema| schema.title = Some("subject".into()), "`subject`, is no member"),
            (|schema| schema.members.push("text".into()), "member `text` is named twice"),
            (
                |schema| schema.fields[0].members.push("body".into()),
                "member `body` of field `text` is unknown",
            ),
            (|schema| schema.fields[0].members.push("text".into()), "of field `text` is named twice"),
            (|schema| schema.members.push("a\nb".into()), "without control characters"),
        ];
        for (change, expected) in changes {
            let mut schema = Schema::default();
            change(&mut schema);
            let message = schema.validate().unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}

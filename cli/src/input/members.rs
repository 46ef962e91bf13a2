//! Where the members of documents are in the input.

use tierdex::schema::{Schema, Stored};

/// Names of the members of the default schema.
const TITLE: &str = "title";
const TEXT: &str = "text";

/// Where the members of documents are in the input: numbered as in the schema.
#[derive(Debug, Clone)]
pub struct InputMembers {
    /// For each member the path in a JSON object, with dots between the names of nested objects, and the name
    /// of the column in TSV.
    pub paths: Vec<String>,
    /// The member that is the title of text files.
    pub title: Option<usize>,
    /// The member that is the text of text files and that may be split.
    pub text: Option<usize>,
    /// Whether what documents have beside these members is stored.
    pub keeps_others: bool,
    /// Whether the members are those of the default schema: then a document needs a text, and more names of
    /// TSV columns are known.
    pub is_default: bool,
}

impl InputMembers {
    /// Members that are found by their names in the schema.
    pub fn of(schema: &Schema) -> InputMembers {
        InputMembers {
            paths: schema.members.clone(),
            title: schema.member(TITLE),
            text: schema.member(TEXT),
            keeps_others: schema.stored == Stored::All,
            is_default: InputMembers::are_default(schema),
        }
    }

    /// Whether the members of a schema are those of the default one.
    pub fn are_default(schema: &Schema) -> bool {
        schema.members == [TITLE, TEXT]
    }

    /// The member whose path this is.
    pub fn of_path(&self, path: &str) -> Option<usize> {
        self.paths.iter().position(|known| known == path)
    }
}

impl Default for InputMembers {
    fn default() -> InputMembers {
        InputMembers::of(&Schema::default())
    }
}

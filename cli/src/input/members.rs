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
            is_default: schema.members == [TITLE, TEXT],
        }
    }

    /// Whether the title and the text of a schema may have other names in the input: it has the members of
    /// the default schema, and those of fields that were added.
    pub fn can_be_renamed(schema: &Schema) -> bool {
        schema.members.len() >= 2 && schema.members[..2] == [TITLE, TEXT]
    }

    /// Sets the paths of title and text in the input.
    ///
    /// # Errors
    /// Another member has the same path; the message says so.
    pub fn rename(&mut self, title: Option<&str>, text: Option<&str>) -> Result<(), String> {
        for (number, name) in [title, text].into_iter().enumerate() {
            self.paths[number] = name.unwrap_or(&self.paths[number]).to_string();
        }
        let twice = (0..2).find(|&number| self.paths[number + 1..].contains(&self.paths[number]));
        match twice {
            None => Ok(()),
            Some(number) => Err(format!(
                "{} is {}, which is another member of the schema too",
                ["--title-field", "--text-field"][number],
                self.paths[number]
            )),
        }
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

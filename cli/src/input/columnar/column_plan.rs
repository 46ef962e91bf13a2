//! What is read of the columns of a file: the id, members of the schema, and what is stored beside them.
//!
//! A column is found by its path as a member of a JSON object is: with dots between the names of structs.
//! Lists are transparent: each item is a value, or a struct.

use super::value::has_values;
use crate::input::options::InputOptions;
use arrow_schema::{DataType, Fields};

/// Maximum number of column names in a message.
const NAMES_SHOWN_MAX: usize = 16;

/// The columns of a file, in their order.
#[derive(Debug)]
pub(super) struct RowPlan {
    pub columns: Vec<ColumnPlan>,
    /// Paths of columns that are not indexed.
    pub unindexed: Vec<String>,
    /// Whether what is not indexed is stored.
    pub keeps_others: bool,
}

/// What is read of a column.
#[derive(Debug)]
pub(super) struct ColumnPlan {
    pub path: String,
    pub role: ColumnRole,
}

#[derive(Debug)]
pub(super) enum ColumnRole {
    /// The column is not indexed.
    Other,
    /// Each value is the id of the document.
    Id,
    /// Each value is a value of a member of the schema.
    Member(usize),
    /// A struct, of which columns are read.
    Struct(Vec<ColumnPlan>),
}

impl RowPlan {
    /// The plan for a file with these columns. An error names the column that cannot be read.
    pub fn of(fields: &Fields, options: &InputOptions) -> Result<RowPlan, String> {
        let mut unindexed = Vec::new();
        let columns = plan_columns(fields, "", options, &mut unindexed)?;
        Ok(RowPlan { columns, unindexed, keeps_others: options.members.keeps_others })
    }

    /// Whether a column is read.
    pub fn reads(&self, column: &ColumnPlan) -> bool {
        self.keeps_others || !matches!(column.role, ColumnRole::Other)
    }

    /// Numbers of the leaves that are read, in a numbering of all that are not structs or lists.
    pub fn leaves(&self, fields: &Fields) -> Vec<usize> {
        let (mut leaves, mut next) = (Vec::new(), 0);
        self.add_leaves(&self.columns, fields, &mut next, &mut leaves);
        leaves
    }

    fn add_leaves(&self, columns: &[ColumnPlan], fields: &Fields, next: &mut usize, leaves: &mut Vec<usize>) {
        for (column, field) in columns.iter().zip(fields) {
            match (&column.role, struct_in(field.data_type())) {
                (ColumnRole::Struct(columns), Some(fields)) => self.add_leaves(columns, fields, next, leaves),
                _ => {
                    let end = *next + count_leaves(field.data_type());
                    if self.reads(column) {
                        leaves.extend(*next..end);
                    }
                    *next = end;
                }
            }
        }
    }

    /// Checks that the columns that the user has named are in the file, or are keys of its folder.
    pub fn check_named(&self, options: &InputOptions, keys: &[String]) -> Result<(), String> {
        let mut found = Vec::new();
        collect_named(&self.columns, &mut found);
        found.extend(keys.iter().map(String::as_str));
        let known = &options.members;
        // The title is shown, and the id names a document, if there is one.
        let is_optional = |number: usize, path: &str| Some(number) == known.title && path == "title";
        let named = known.paths.iter().enumerate().filter(|(number, path)| !is_optional(*number, path));
        let id = Some(&options.id_field).filter(|id| *id != "id");
        let missing = named.map(|(_, path)| path).chain(id).find(|path| !found.contains(&path.as_str()));
        let has_member = known.paths.iter().any(|path| found.contains(&path.as_str()));
        match missing {
            Some(path) => Err(self.missing_column(path, options, keys)),
            None if !has_member => Err(self.missing_column(&known.paths.join("`, `"), options, keys)),
            None => Ok(()),
        }
    }

    fn missing_column(&self, path: &str, options: &InputOptions, keys: &[String]) -> String {
        let mut names = Vec::new();
        collect_names(&self.columns, &mut names);
        names.extend(keys.iter().map(String::as_str));
        let shown: Vec<String> =
            names.iter().take(NAMES_SHOWN_MAX).map(|name| format!("`{}`", name.escape_debug())).collect();
        let more = if names.len() > NAMES_SHOWN_MAX { ", and others" } else { "" };
        let advice = match options.members.text {
            Some(text) if options.members.is_default && options.members.paths[text] == *path => {
                "; name the text as in --text-field COLUMN"
            }
            _ => "",
        };
        format!("no column is called `{path}`; it has {}{more}{advice}", shown.join(", "))
    }
}

/// Whether a path is that of a column in the struct `outer`.
fn is_inside(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
}

fn plan_columns(
    fields: &Fields,
    prefix: &str,
    options: &InputOptions,
    unindexed: &mut Vec<String>,
) -> Result<Vec<ColumnPlan>, String> {
    fields
        .iter()
        .map(|field| {
            let path = format!("{prefix}{}", field.name());
            let role = role_of(field.data_type(), &path, options, unindexed)?;
            Ok(ColumnPlan { path, role })
        })
        .collect()
}

fn role_of(
    data_type: &DataType,
    path: &str,
    options: &InputOptions,
    unindexed: &mut Vec<String>,
) -> Result<ColumnRole, String> {
    let (known, id) = (&options.members, &options.id_field);
    let member = known.of_path(path);
    let inside = known.paths.iter().chain([id]).find(|known| is_inside(known, path));
    let role = if path == *id { Some(ColumnRole::Id) } else { member.map(ColumnRole::Member) };
    match (struct_in(data_type), role) {
        (Some(fields), None) if inside.is_some() => {
            Ok(ColumnRole::Struct(plan_columns(fields, &format!("{path}."), options, unindexed)?))
        }
        (Some(fields), Some(_)) => Err(format!(
            "the column `{path}` is a struct; name a column in it, as in {path}.{}",
            fields.first().map_or("name", |field| field.name())
        )),
        (None, Some(ColumnRole::Id)) if list_item(data_type).is_some() => {
            Err(format!("the column `{path}` is a list, which cannot be an id"))
        }
        (None, Some(role)) => match has_values(value_type(data_type)) {
            true => Ok(role),
            false => {
                Err(format!("the column `{path}` has the type {data_type}, which cannot be read as text"))
            }
        },
        (_, None) => {
            unindexed.push(path.to_string());
            Ok(ColumnRole::Other)
        }
    }
}

/// The paths of ids and members that have a column.
fn collect_named<'p>(columns: &'p [ColumnPlan], found: &mut Vec<&'p str>) {
    for ColumnPlan { path, role } in columns {
        match role {
            ColumnRole::Id | ColumnRole::Member(_) => found.push(path),
            ColumnRole::Struct(columns) => collect_named(columns, found),
            ColumnRole::Other => {}
        }
    }
}

fn collect_names<'p>(columns: &'p [ColumnPlan], names: &mut Vec<&'p str>) {
    for ColumnPlan { path, role } in columns {
        match role {
            ColumnRole::Struct(columns) => collect_names(columns, names),
            _ => names.push(path),
        }
    }
}

/// The type of the items of a list.
pub(super) fn list_item(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type())
        }
        _ => None,
    }
}

/// The type of the values in lists and dictionaries.
fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => value_type(values),
        data_type => list_item(data_type).map_or(data_type, value_type),
    }
}

/// The columns of a struct, also in lists.
fn struct_in(data_type: &DataType) -> Option<&Fields> {
    match value_type(data_type) {
        DataType::Struct(fields) => Some(fields),
        _ => None,
    }
}

fn count_leaves(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| count_leaves(field.data_type())).sum(),
        DataType::Map(entries, _) => count_leaves(entries.data_type()),
        DataType::Dictionary(_, values) => count_leaves(values),
        data_type => list_item(data_type).map_or(1, count_leaves),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::members::InputMembers;
    use arrow_schema::Field;
    use tierdex::schema::{Field as TextField, Schema};

    fn columns() -> Fields {
        let inner = Fields::from(vec![
            Field::new("name", DataType::Utf8, true),
            Field::new("address", DataType::Utf8, true),
        ]);
        let item = Field::new("item", DataType::Struct(inner), true);
        Fields::from(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("to", DataType::List(item.into()), true),
            Field::new("body", DataType::Utf8, true),
            Field::new("span", DataType::Duration(arrow_schema::TimeUnit::Second), true),
        ])
    }

    fn options(paths: &[&str]) -> InputOptions {
        let fields = paths.iter().map(|path| TextField::new("f", &[path])).collect();
        InputOptions { members: InputMembers::of(&Schema::of(fields)), ..InputOptions::default() }
    }

    #[test]
    fn columns_are_found_by_their_paths() {
        let options = options(&["to.name", "body"]);
        let plan = RowPlan::of(&columns(), &options).unwrap();
        assert_eq!(plan.leaves(&columns()), [0, 1, 3]);
        assert_eq!(plan.unindexed, ["to.address", "span"]);
        plan.check_named(&options, &[]).unwrap();
        let mut all = RowPlan::of(&columns(), &options).unwrap();
        all.keeps_others = true;
        assert_eq!(all.leaves(&columns()), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn missing_columns_and_wrong_types_are_errors() {
        let missing = |options: &InputOptions, keys: &[String]| {
            RowPlan::of(&columns(), options).unwrap().check_named(options, keys).err()
        };
        let words = "no column is called `text`; it has `id`, `to`, `body`, `span`; name the text as in";
        assert!(missing(&InputOptions::default(), &[]).unwrap().starts_with(words));
        let year = options(&["body", "year"]);
        let error = missing(&year, &[]).unwrap();
        assert_eq!(error, "no column is called `year`; it has `id`, `to`, `body`, `span`");
        assert_eq!(missing(&year, &["year".to_string()]), None);
        let wrong_id = InputOptions { id_field: "docno".to_string(), ..options(&["body"]) };
        assert!(missing(&wrong_id, &[]).unwrap().contains("`docno`"));
        let error = |paths: &[&str]| RowPlan::of(&columns(), &options(paths)).unwrap_err();
        assert!(error(&["to"]).contains("`to` is a struct; name a column in it, as in to.name"));
        assert!(error(&["span"]).contains("`span` has the type Duration"));
    }
}

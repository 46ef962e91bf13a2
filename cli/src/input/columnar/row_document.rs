//! Reads a row of a batch as a document, as a JSON object with the same members is read.

use super::column_plan::{ColumnPlan, ColumnRole, RowPlan, list_item};
use super::value::value_of;
use crate::input::report::{LineProblem, ProblemKind};
use crate::input::sink::InputDocument;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use serde_json::Value;
use std::{borrow::Cow, collections::BTreeMap, ops::Range};

/// Reads rows of a batch.
pub(super) struct RowReader<'b> {
    pub plan: &'b RowPlan,
    pub columns: &'b [ArrayRef],
    /// Keys of the folders of the file that are members, and their values.
    pub keys: &'b [(usize, String)],
    /// Those that are stored beside them, in JSON.
    pub other_keys: &'b [(String, String)],
    /// Maximum length of a document in bytes.
    pub document_bytes_max: usize,
}

impl<'b> RowReader<'b> {
    /// The document in a row. Null values are no values.
    pub fn read_row(&self, row: usize) -> Result<InputDocument<'b>, LineProblem> {
        let mut document = RowDocument { left: self.document_bytes_max, ..RowDocument::default() };
        for (column, values) in self.plan.columns.iter().zip(self.columns) {
            document.add(column, values, row, self.plan.keeps_others)?;
        }
        let keys = self.keys.iter().map(|(member, value)| (*member, Cow::Borrowed(value.as_str())));
        document.values.extend(keys);
        for (path, value) in self.other_keys {
            document.others.entry(path).or_default().push(value.clone());
        }
        let RowDocument { id, values, others, .. } = document;
        Ok(InputDocument { id, values, others: object_of(others), first_part: None })
    }
}

/// The parts of a document that were read.
#[derive(Default)]
struct RowDocument<'b> {
    id: Option<Cow<'b, str>>,
    values: Vec<(usize, Cow<'b, str>)>,
    /// Other columns by their paths, each with its values in JSON.
    others: BTreeMap<&'b str, Vec<String>>,
    /// Bytes that the document may still have.
    left: usize,
}

impl<'b> RowDocument<'b> {
    fn add(
        &mut self,
        column: &'b ColumnPlan,
        values: &'b dyn Array,
        row: usize,
        keeps_others: bool,
    ) -> Result<(), LineProblem> {
        if values.is_null(row) {
            return Ok(());
        }
        match &column.role {
            ColumnRole::Other if !keeps_others => Ok(()),
            ColumnRole::Other => {
                let json = self.json_of(values, row)?;
                self.others.entry(&column.path).or_default().push(json.to_string());
                Ok(())
            }
            _ => {
                if let Some((items, rows)) = list_items(values, row) {
                    return rows.into_iter().try_for_each(|row| self.add(column, items, row, keeps_others));
                }
                if let Some((items, row)) = dictionary_item(values, row) {
                    return row.map_or(Ok(()), |row| self.add(column, items, row, keeps_others));
                }
                match &column.role {
                    ColumnRole::Struct(columns) => columns
                        .iter()
                        .zip(values.as_struct().columns())
                        .try_for_each(|(column, values)| self.add(column, values, row, keeps_others)),
                    _ => self.add_text(column, values, row),
                }
            }
        }
    }

    fn add_text(
        &mut self,
        column: &ColumnPlan,
        values: &'b dyn Array,
        row: usize,
    ) -> Result<(), LineProblem> {
        let Some(value) = value_of(values, row) else { return Ok(()) };
        let is_bytes = matches!(value, super::value::CellValue::Bytes(_));
        let Some(text) = value.into_text() else {
            // A number that is not finite is null in JSON.
            return if is_bytes { Err(not_text(&column.path)) } else { Ok(()) };
        };
        self.take(text.len() + size_of::<Cow<'_, str>>())?;
        match column.role {
            ColumnRole::Member(member) => self.values.push((member, text)),
            _ => self.id = Some(text),
        }
        Ok(())
    }

    fn take(&mut self, bytes: usize) -> Result<(), LineProblem> {
        self.left = self.left.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }

    /// The value in a row as JSON.
    fn json_of(&mut self, values: &dyn Array, row: usize) -> Result<Value, LineProblem> {
        if values.is_null(row) {
            return Ok(Value::Null);
        }
        self.take(size_of::<Value>())?;
        if let Some((items, row)) = dictionary_item(values, row) {
            return row.map_or(Ok(Value::Null), |row| self.json_of(items, row));
        }
        if let Some((items, rows)) = list_items(values, row) {
            let items: Result<Vec<Value>, _> = rows.into_iter().map(|row| self.json_of(items, row)).collect();
            return items.map(Value::Array);
        }
        match values.data_type() {
            DataType::Struct(fields) => {
                let mut object = serde_json::Map::new();
                for (field, column) in fields.iter().zip(values.as_struct().columns()) {
                    self.take(field.name().len())?;
                    object.insert(field.name().clone(), self.json_of(column, row)?);
                }
                Ok(Value::Object(object))
            }
            DataType::Map(..) => self.json_of_map(values, row),
            data_type if super::value::has_values(data_type) => {
                let Some(value) = value_of(values, row) else { return Ok(Value::Null) };
                let json = value.to_json();
                self.take(json.as_str().map_or(0, str::len))?;
                Ok(json)
            }
            _ => Ok(Value::Null),
        }
    }

    fn json_of_map(&mut self, values: &dyn Array, row: usize) -> Result<Value, LineProblem> {
        let map = values.as_map();
        let offsets = map.value_offsets();
        let mut object = serde_json::Map::new();
        for entry in offset_range(offsets[row], offsets[row + 1]) {
            let key = match self.json_of(map.keys(), entry)? {
                Value::String(key) => key,
                key => key.to_string(),
            };
            object.insert(key, self.json_of(map.values(), entry)?);
        }
        Ok(Value::Object(object))
    }
}

fn not_text(path: &str) -> LineProblem {
    let message = format!("the bytes in the column `{path}` are not UTF-8");
    LineProblem { kind: ProblemKind::Encoding, message }
}

fn too_large() -> LineProblem {
    let message = "the row is longer than the longest document; a larger --memory allows more".to_string();
    LineProblem { kind: ProblemKind::TooLarge, message }
}

fn offset_range(start: i32, end: i32) -> Range<usize> {
    start as usize..end as usize
}

/// The items of the list in a row: an array, and where they are in it. `None` if the column has no lists.
/// Items without values are left out.
fn list_items(values: &dyn Array, row: usize) -> Option<(&dyn Array, Range<usize>)> {
    let item = list_item(values.data_type())?;
    let (items, range) = match values.data_type() {
        DataType::List(_) => {
            let list = values.as_list::<i32>();
            (list.values(), offset_range(list.value_offsets()[row], list.value_offsets()[row + 1]))
        }
        DataType::LargeList(_) => {
            let list = values.as_list::<i64>();
            let offsets = list.value_offsets();
            (list.values(), offsets[row] as usize..offsets[row + 1] as usize)
        }
        _ => {
            let list = values.as_fixed_size_list();
            let start = list.value_offset(row) as usize;
            (list.values(), start..start + list.value_length() as usize)
        }
    };
    Some((items.as_ref(), if *item == DataType::Null { 0..0 } else { range }))
}

/// The value of a dictionary that a row names; the row is `None` for null. `None` if the column has no
/// dictionary.
fn dictionary_item(values: &dyn Array, row: usize) -> Option<(&dyn Array, Option<usize>)> {
    let dictionary = values.as_any_dictionary_opt()?;
    let key = super::value::value_of(dictionary.keys(), row);
    let key = match key {
        Some(super::value::CellValue::I64(key)) => usize::try_from(key).ok(),
        Some(super::value::CellValue::U64(key)) => usize::try_from(key).ok(),
        _ => None,
    };
    let items = dictionary.values().as_ref();
    Some((items, key.filter(|&key| key < items.len())))
}

/// A JSON object of columns by their paths; several values of a path are an array. Empty without columns.
fn object_of(columns: BTreeMap<&str, Vec<String>>) -> String {
    if columns.is_empty() {
        return String::new();
    }
    let columns = columns.into_iter().map(|(path, mut values)| {
        let value = if values.len() == 1 { values.remove(0) } else { format!("[{}]", values.join(",")) };
        format!("{}:{value}", Value::from(path))
    });
    format!("{{{}}}", columns.collect::<Vec<_>>().join(","))
}

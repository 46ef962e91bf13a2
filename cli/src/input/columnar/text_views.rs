//! Types of columns for which the decoder keeps texts in their pages: a dictionary's values are not copied
//! for each row that has them.

use arrow_schema::{DataType, Field, FieldRef, Fields};
use std::sync::Arc;

/// The columns with views in place of texts and bytes.
pub(super) fn with_views(fields: &Fields) -> Fields {
    fields.iter().map(view_field).collect()
}

fn view_field(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Struct(fields) => DataType::Struct(with_views(fields)),
        DataType::List(item) => DataType::List(view_field(item)),
        DataType::Map(entries, sorted) => DataType::Map(view_field(entries), *sorted),
        other => other.clone(),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

//! Columns of strings that come from other libraries, which do not always validate them: strings that Parquet
//! files contain, that `pyarrow.Array.from_buffers` takes, or that `cast(..., safe=False)` makes.
//!
//! No `str` is made of foreign memory before [`Strings::read`] has checked it:
//! 1. the offsets of strings ascend and are within the values; views and keys of dictionaries are within
//!    their buffers. Otherwise the column is an error.
//! 2. the bytes are UTF-8, all values at once, and no offset is inside of a character. If they are not, the
//!    values are checked one by one, and U+FFFD takes the place of invalid bytes.
//!
//! The lengths of buffers are those that the Arrow C data interface promises.

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, GenericStringArray, LargeStringArray, OffsetSizeTrait, StringViewArray};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::DataType;
use simdutf8::basic::from_utf8;

/// A checked column of strings.
#[derive(Clone)]
pub struct Strings {
    values: LargeStringArray,
    /// Rows whose bytes were not UTF-8, in ascending order.
    replaced: Vec<usize>,
}

impl Strings {
    /// The strings of a column; `None` for a column of nulls. With `integers` it may also have integers.
    ///
    /// # Errors
    /// Types that are no strings, and damage; the message begins with what the column has.
    pub fn read(column: &ArrayRef, integers: bool) -> Result<Option<Strings>, String> {
        let kind = match column.data_type() {
            DataType::Dictionary(_, value) => value.as_ref(),
            other => other,
        };
        let is_string = matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        if !integers && *kind == DataType::Null {
            return Ok(None);
        }
        if !(is_string || integers && kind.is_integer()) {
            let needed = if integers { "strings or integers" } else { "strings" };
            return Err(format!("has values of type {kind}, not {needed}"));
        }
        read_type(column).map(Some)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len()
    }

    /// Whether a row is null.
    pub fn is_null(&self, row: usize) -> bool {
        self.values.is_null(row)
    }

    /// The string of a row; empty if it is null.
    pub fn value(&self, row: usize) -> &str {
        if self.values.is_valid(row) { self.values.value(row) } else { "" }
    }

    /// Rows of invalid bytes, in which there is U+FFFD now.
    pub fn replaced(&self) -> &[usize] {
        &self.replaced
    }

    fn valid(column: &ArrayRef) -> Result<Strings, String> {
        let values = cast(column, &DataType::LargeUtf8).map_err(|error| error.to_string())?;
        Ok(Strings { values: values.as_string::<i64>().clone(), replaced: Vec::new() })
    }

    /// Strings of bytes that may be invalid.
    fn lossy<'b>(values: impl Iterator<Item = Option<&'b [u8]>>) -> Strings {
        let (mut strings, mut replaced) = (LargeStringBuilder::new(), Vec::new());
        for (row, value) in values.enumerate() {
            let text = value.map(String::from_utf8_lossy);
            if matches!(text, Some(std::borrow::Cow::Owned(_))) {
                replaced.push(row);
            }
            strings.append_option(text);
        }
        Strings { values: strings.finish(), replaced }
    }
}

fn read_type(column: &ArrayRef) -> Result<Strings, String> {
    match column.data_type() {
        DataType::Utf8 => read_offsets(column, column.as_string::<i32>()),
        DataType::LargeUtf8 => read_offsets(column, column.as_string::<i64>()),
        DataType::Utf8View => read_views(column, column.as_string_view()),
        DataType::Dictionary(..) => read_dictionary(column),
        _ => Strings::valid(column),
    }
}

fn read_offsets<O: OffsetSizeTrait>(
    column: &ArrayRef,
    array: &GenericStringArray<O>,
) -> Result<Strings, String> {
    let offsets: &[O] = array.offsets();
    check_offsets(offsets, array.values().len())?;
    if is_utf8(offsets, array.values()) {
        return Strings::valid(column);
    }
    let bytes = |row: usize| {
        let range = offsets[row].as_usize()..offsets[row + 1].as_usize();
        array.is_valid(row).then(|| &array.values()[range])
    };
    Ok(Strings::lossy((0..array.len()).map(bytes)))
}

/// Checks that offsets ascend from 0 or more to at most `bytes`.
fn check_offsets<O: OffsetSizeTrait>(offsets: &[O], bytes: usize) -> Result<(), String> {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return Ok(()) };
    let is_within = |offset: &O| offset.to_usize().is_some_and(|offset| offset <= bytes);
    if is_within(first) && is_within(last) && offsets.is_sorted() {
        return Ok(());
    }
    let falls = offsets.windows(2).position(|pair| pair[1] < pair[0] || !is_within(&pair[1]));
    Err(damage(falls.unwrap_or(0), "the offsets of the string fall or leave its buffer"))
}

/// Whether all values are UTF-8. `offsets` are checked.
fn is_utf8<O: OffsetSizeTrait>(offsets: &[O], values: &[u8]) -> bool {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return true };
    let values = &values[..last.as_usize()];
    let starts = |offset: &O| values.get(offset.as_usize()).is_none_or(|byte| byte & 0xC0 != 0x80);
    from_utf8(&values[first.as_usize()..]).is_ok() && offsets.iter().all(starts)
}

fn read_views(column: &ArrayRef, array: &StringViewArray) -> Result<Strings, String> {
    let mut is_valid = true;
    for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
        match view(array, row) {
            Some(bytes) => is_valid &= from_utf8(bytes).is_ok(),
            None => return Err(damage(row, "the view of the string leaves its buffer")),
        }
    }
    if is_valid {
        return Strings::valid(column);
    }
    let bytes = |row| if array.is_valid(row) { view(array, row) } else { None };
    Ok(Strings::lossy((0..array.len()).map(bytes)))
}

/// The bytes of a view: 12 bytes at most are in the view itself, after the length. `None` if it is damaged.
fn view(array: &StringViewArray, row: usize) -> Option<&[u8]> {
    const INLINE: usize = 12;
    let word = |at: u32| (array.views()[row] >> (32 * at)) as u32 as usize;
    let length = word(0);
    if length <= INLINE {
        let inner = array.views().inner().as_slice();
        return inner.get(row * 16 + 4..row * 16 + 4 + length);
    }
    let (buffer, start) = (array.data_buffers().get(word(2))?, word(3));
    buffer.get(start..start.checked_add(length)?)
}

fn read_dictionary(column: &ArrayRef) -> Result<Strings, String> {
    let dictionary = column.as_any_dictionary();
    let safe = CastOptions { safe: false, ..CastOptions::default() };
    let keys = cast_with_options(dictionary.keys(), &DataType::Int64, &safe).map_err(|e| e.to_string())?;
    let keys = keys.as_primitive::<Int64Type>();
    let values = read_type(dictionary.values())?;
    let (mut strings, mut replaced) = (LargeStringBuilder::new(), Vec::new());
    for (row, key) in keys.iter().enumerate() {
        let key = key.map(|key| usize::try_from(key).unwrap_or(usize::MAX));
        if key.is_some_and(|key| key >= values.rows()) {
            return Err(damage(row, "the key is outside of the dictionary"));
        }
        if key.is_some_and(|key| values.replaced.binary_search(&key).is_ok()) {
            replaced.push(row);
        }
        strings.append_option(key.filter(|key| !values.is_null(*key)).map(|key| values.value(key)));
    }
    Ok(Strings { values: strings.finish(), replaced })
}

fn damage(row: usize, what: &str) -> String {
    format!("is damaged: in row {row} {what}")
}

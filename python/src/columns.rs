//! Columns of strings that come from other libraries, which do not always validate them: strings that Parquet
//! files contain, that `pyarrow.Array.from_buffers` takes, or that `cast(..., safe=False)` makes.
//!
//! No `str` is made of foreign memory before [`Strings::read`] has checked it:
//! 1. the offsets of strings ascend and are within the values; views and keys of dictionaries are within
//!    their buffers, and so are the offsets of lists. Otherwise the column is an error.
//! 2. the bytes are UTF-8, all values at once, and no offset is inside of a character. If they are not, the
//!    values are checked one by one, and U+FFFD takes the place of invalid bytes.
//!
//! Views and keys of null rows may have any value: they are not read. The lengths of buffers are those that
//! the Arrow C data interface promises.

use arrow_array::{
    Array, ArrayRef, GenericListArray, GenericStringArray, Int64Array, LargeStringArray, OffsetSizeTrait,
    StringViewArray,
};
use arrow_array::{builder::LargeStringBuilder, cast::AsArray, types::Int64Type};
use arrow_buffer::NullBuffer;
use arrow_cast::cast;
use arrow_schema::DataType;
use simdutf8::basic::from_utf8;
use std::{borrow::Cow, ops::Range};

/// A checked column of strings. Its memory may be foreign: it must not change during the call that reads it.
pub struct Strings {
    values: LargeStringArray,
    /// For a dictionary column, the number of the value of each row. Only the numbers of rows that are not
    /// null have been checked.
    keys: Option<Int64Array>,
    /// Numbers of the values whose bytes were not UTF-8, ascending.
    replaced: Vec<usize>,
}

impl Strings {
    /// The strings of a column; `None` for a column of nulls. With `integers` it may also have integers.
    ///
    /// # Errors
    /// The type of the column is not a string type, or the array is damaged. The message begins with what it
    /// has.
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

    /// Whether a row is null.
    pub fn is_null(&self, row: usize) -> bool {
        self.value_number(row).is_none_or(|number| self.values.is_null(number))
    }

    /// The string of a row; empty if it is null.
    pub fn value(&self, row: usize) -> &str {
        let number = self.value_number(row).filter(|number| self.values.is_valid(*number));
        number.map_or("", |number| self.values.value(number))
    }

    /// Whether a row had invalid bytes, in whose place there is U+FFFD now.
    pub fn is_replaced(&self, row: usize) -> bool {
        !self.replaced.is_empty()
            && self.value_number(row).is_some_and(|number| self.replaced.binary_search(&number).is_ok())
    }

    /// The number of a row's value.
    fn value_number(&self, row: usize) -> Option<usize> {
        match &self.keys {
            None => Some(row),
            Some(keys) => keys.is_valid(row).then(|| keys.value(row) as usize),
        }
    }

    /// The strings of a column whose offsets and bytes have been checked.
    fn from_valid(column: &ArrayRef) -> Result<Strings, String> {
        let values = cast(column, &DataType::LargeUtf8).map_err(|error| error.to_string())?;
        Ok(Strings { values: values.as_string::<i64>().clone(), keys: None, replaced: Vec::new() })
    }

    /// Copies values, with U+FFFD in place of bytes that are not UTF-8.
    fn copy_lossy<'b>(values: impl Iterator<Item = Option<&'b [u8]>>) -> Strings {
        let (mut strings, mut replaced) = (LargeStringBuilder::new(), Vec::new());
        for (number, value) in values.enumerate() {
            let text = value.map(|bytes| match from_utf8(bytes) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => {
                    replaced.push(number);
                    String::from_utf8_lossy(bytes)
                }
            });
            strings.append_option(text);
        }
        Strings { values: strings.finish(), keys: None, replaced }
    }
}

/// A checked column of the values of a member: of strings, or of lists of strings.
pub struct Values {
    strings: Strings,
    /// The ends of lists in the strings, the first of which is the start of the first list.
    ends: Option<Vec<usize>>,
    /// Marks the rows without values.
    nulls: Option<NullBuffer>,
}

impl Values {
    /// The values of a column; `None` for a column of nulls. `nulls` marks other rows without values.
    ///
    /// # Errors
    /// As [`Strings::read`].
    pub fn read(column: &ArrayRef, nulls: Option<NullBuffer>) -> Result<Option<Values>, String> {
        let (strings, ends) = match column.data_type() {
            DataType::List(_) => read_lists(column.as_list::<i32>())?,
            DataType::LargeList(_) => read_lists(column.as_list::<i64>())?,
            _ => (Strings::read(column, false)?, None),
        };
        // The strings know their own nulls.
        let own = column.nulls().filter(|_| ends.is_some());
        let nulls = NullBuffer::union(own, nulls.as_ref());
        Ok(strings.map(|strings| Values { strings, ends, nulls }))
    }

    /// Whether a row has no value, not even an empty one.
    pub fn is_null(&self, row: usize) -> bool {
        self.numbers(row).all(|number| self.strings.is_null(number))
    }

    /// The values of a row that are not empty.
    pub fn of_row(&self, row: usize) -> impl Iterator<Item = &str> {
        self.numbers(row).map(|number| self.strings.value(number)).filter(|value| !value.is_empty())
    }

    /// Number of the values of a row in whose bytes there is U+FFFD now.
    pub fn replaced(&self, row: usize) -> usize {
        self.numbers(row).filter(|number| self.strings.is_replaced(*number)).count()
    }

    /// The numbers of the strings of a row.
    fn numbers(&self, row: usize) -> Range<usize> {
        match &self.ends {
            _ if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) => 0..0,
            None => row..row + 1,
            Some(ends) => ends[row] - ends[0]..ends[row + 1] - ends[0],
        }
    }
}

type StringsOfLists = (Option<Strings>, Option<Vec<usize>>);

/// The strings of lists, and the ends of the lists in the array of strings.
fn read_lists<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> Result<StringsOfLists, String> {
    let offsets: &[O] = lists.offsets();
    check_offsets(offsets, lists.values().len(), "list")?;
    let ends: Vec<usize> = offsets.iter().map(|offset| offset.as_usize()).collect();
    let (first, last) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
    Ok((Strings::read(&lists.values().slice(first, last - first), false)?, Some(ends)))
}

fn read_type(column: &ArrayRef) -> Result<Strings, String> {
    match column.data_type() {
        DataType::Utf8 => read_offsets(column, column.as_string::<i32>()),
        DataType::LargeUtf8 => read_offsets(column, column.as_string::<i64>()),
        DataType::Utf8View => read_views(column.as_string_view()),
        DataType::Dictionary(..) => read_dictionary(column),
        _ => Strings::from_valid(column),
    }
}

fn read_offsets<O: OffsetSizeTrait>(
    column: &ArrayRef,
    array: &GenericStringArray<O>,
) -> Result<Strings, String> {
    let offsets: &[O] = array.offsets();
    check_offsets(offsets, array.values().len(), "string")?;
    if is_utf8(offsets, array.values()) {
        return Strings::from_valid(column);
    }
    let bytes = |row: usize| {
        let range = offsets[row].as_usize()..offsets[row + 1].as_usize();
        array.is_valid(row).then(|| &array.values()[range])
    };
    Ok(Strings::copy_lossy((0..array.len()).map(bytes)))
}

/// Checks that offsets ascend from 0 or more to at most `bytes`; `what` is what they are of.
fn check_offsets<O: OffsetSizeTrait>(offsets: &[O], bytes: usize, what: &str) -> Result<(), String> {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return Ok(()) };
    let is_within = |offset: &O| offset.to_usize().is_some_and(|offset| offset <= bytes);
    if is_within(first) && is_within(last) && offsets.is_sorted() {
        return Ok(());
    }
    let falls = offsets.windows(2).position(|pair| pair[1] < pair[0] || !is_within(&pair[1]));
    Err(damage_message(falls.unwrap_or(0), &format!("the offsets of the {what} fall or leave its buffer")))
}

/// Whether all values are UTF-8. `offsets` are checked.
fn is_utf8<O: OffsetSizeTrait>(offsets: &[O], values: &[u8]) -> bool {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return true };
    let values = &values[..last.as_usize()];
    let starts = |offset: &O| values.get(offset.as_usize()).is_none_or(|byte| byte & 0xC0 != 0x80);
    from_utf8(&values[first.as_usize()..]).is_ok() && offsets.iter().all(starts)
}

fn read_views(array: &StringViewArray) -> Result<Strings, String> {
    let bytes = |row| if array.is_valid(row) { view_bytes(array, row).map(Some) } else { Some(None) };
    match (0..array.len()).find(|row| bytes(*row).is_none()) {
        Some(row) => Err(damage_message(row, "the view of the string leaves its buffer")),
        None => Ok(Strings::copy_lossy((0..array.len()).map(|row| bytes(row).flatten()))),
    }
}

/// The bytes of a view: 12 bytes at most are in the view itself, after the length. `None` if it is damaged.
fn view_bytes(array: &StringViewArray, row: usize) -> Option<&[u8]> {
    const INLINE_VIEW_BYTES_MAX: usize = 12;
    let word = |at: u32| (array.views()[row] >> (32 * at)) as u32 as usize;
    let length = word(0);
    if length <= INLINE_VIEW_BYTES_MAX {
        let inner = array.views().inner().as_slice();
        return inner.get(row * 16 + 4..row * 16 + 4 + length);
    }
    let (buffer, start) = (array.data_buffers().get(word(2))?, word(3));
    buffer.get(start..start.checked_add(length)?)
}

fn read_dictionary(column: &ArrayRef) -> Result<Strings, String> {
    let dictionary = column.as_any_dictionary();
    // A key that is too large for the type becomes null.
    let keys = cast(dictionary.keys(), &DataType::Int64).map_err(|error| error.to_string())?;
    let keys = keys.as_primitive::<Int64Type>().clone();
    let values = read_type(dictionary.values())?;
    let is_inside = |key: i64| usize::try_from(key).is_ok_and(|key| key < values.values.len());
    let is_outside = |row: &usize| {
        dictionary.keys().is_valid(*row) && !(keys.is_valid(*row) && is_inside(keys.value(*row)))
    };
    match (0..keys.len()).find(is_outside) {
        Some(row) => Err(damage_message(row, "the key is outside of the dictionary")),
        None => Ok(Strings { keys: Some(keys), ..values }),
    }
}

fn damage_message(row: usize, what: &str) -> String {
    format!("is damaged: in row {row} {what}")
}

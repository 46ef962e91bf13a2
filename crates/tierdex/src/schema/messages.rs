//! Settings and lists of names in error messages.

/// Maximum number of characters of a setting or of a name in an error message: a list of stop words can be
/// long.
const SETTING_CHARS_MAX: usize = 40;

/// Maximum number of names of members or fields in an error message.
const NAMES_SHOWN_MAX: usize = 10;

/// A setting of a schema, for messages.
pub(super) struct Setting {
    name: &'static str,
    /// What is compared.
    value: String,
    /// What is shown of it.
    shown: String,
}

impl Setting {
    pub(super) fn new(name: &'static str, value: &str) -> Setting {
        Setting { name, value: value.to_string(), shown: shorten(value) }
    }

    pub(super) fn of_names(name: &'static str, names: &[String]) -> Setting {
        Setting { name, value: names.join("\n"), shown: list_names(names, ", ") }
    }
}

/// The settings whose values differ.
pub(super) fn differences_of<const N: usize>(own: [Setting; N], others: [Setting; N]) -> Vec<String> {
    let differ = own.into_iter().zip(others).filter(|(own, other)| own.value != other.value);
    differ.map(|(own, other)| format!("{}: {}, here {}", own.name, own.shown, other.shown)).collect()
}

/// The first names of a list, and the number of the others.
pub(crate) fn list_names(names: &[String], separator: &str) -> String {
    let shown: Vec<_> = names.iter().take(NAMES_SHOWN_MAX).map(|name| shorten(name)).collect();
    let shown = shown.join(separator);
    match names.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => shown,
        others => format!("{shown} and {others} more"),
    }
}

/// The first characters of a text.
pub(crate) fn shorten(text: &str) -> String {
    text.chars().take(SETTING_CHARS_MAX).collect()
}

pub(super) fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

//! Parses values by their names.

use crate::{Error, Result};
use std::fmt::Display;

/// The member of `all` that is displayed as `text`. `what` names the kind of value in the error message.
pub(crate) fn parse_name<T: Copy + Display>(all: &[T], text: &str, what: &str) -> Result<T> {
    let found = all.iter().copied().find(|value| value.to_string() == text);
    found.ok_or_else(|| {
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        let (last, others) = names.split_last().expect("at least one name");
        Error::Usage(format!("`{text}` is not a {what}; write {} or {last}", others.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::parse_name;

    #[test]
    fn the_error_lists_all_names() {
        let parse =
            |text| parse_name(&["ssd", "sas", "hdd"], text, "device").map_err(|error| error.to_string());
        assert_eq!(parse("sas"), Ok("sas"));
        assert_eq!(parse("tape"), Err("`tape` is not a device; write ssd, sas or hdd".to_string()));
    }
}

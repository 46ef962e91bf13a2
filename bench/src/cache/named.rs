//! Things that are called by their names.

use crate::{Error, Result};
use std::fmt::Display;

/// The one of `all` whose name is `text`; `what` is what they are.
pub(super) fn named<T: Copy + Display>(all: &[T], text: &str, what: &str) -> Result<T> {
    let found = all.iter().copied().find(|one| one.to_string() == text);
    found.ok_or_else(|| {
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        let (last, others) = names.split_last().expect("there is one at least");
        Error::Usage(format!("`{text}` is no {what}; write {} or {last}", others.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn what_is_no_name_is_told_all_names() {
        let parse = |text| named(&["ssd", "sas", "hdd"], text, "device").map_err(|error| error.to_string());
        assert_eq!(parse("sas"), Ok("sas"));
        assert_eq!(parse("tape"), Err("`tape` is no device; write ssd, sas or hdd".to_string()));
    }
}

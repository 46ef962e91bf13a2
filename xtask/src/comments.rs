//! Length of comment lines: rustfmt does not wrap them.

use crate::tree::File;

/// Columns of the longest comment line, indentation included.
const COLUMNS_MAX: usize = 110;

/// Comment lines that are too long, one line each.
pub fn find_problems(sources: &[File]) -> Vec<String> {
    let lines = sources.iter().flat_map(|file| (1..).zip(file.text.lines()).map(move |line| (file, line)));
    let too_long = lines.filter_map(|(file, (number, line))| {
        let columns = line.chars().count();
        (line.trim_start().starts_with("//") && columns > COLUMNS_MAX)
            .then(|| format!("{}:{number}: comment of {columns} columns, at most {COLUMNS_MAX}", file.path))
    });
    too_long.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_comment_lines_are_found() {
        let found = |start: &str, columns: usize| {
            let text = start.to_string() + &"é".repeat(columns - start.len()) + "\n";
            find_problems(&[File { path: "a.rs".to_string(), text }]).len()
        };
        for start in ["// ", "    //! ", "\t/// "] {
            assert_eq!((found(start, 110), found(start, 111)), (0, 1), "{start:?}");
        }
        assert_eq!(found("let x = 1; // ", 200), 0);
    }
}

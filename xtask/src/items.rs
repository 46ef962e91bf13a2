//! Rules for types and functions, from the syntax trees of the sources:
//!
//! - the name of a type is used once; the Python package has its own workspace, and names of the library
//! - no parameter is a tuple that is taken apart in the signature, or a tuple of three and more values
//! - a function has at most [`LINES_MAX`] lines
//!
//! Exceptions are in `xtask/accepted/`, one file a rule, one line an exception. Lines may be removed, but
//! not added; a line without its exception is a problem too.

use crate::tree::File;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Block, FnArg, Pat, Signature, Type, spanned::Spanned};

/// Lines of a function, from its name to its closing brace.
const LINES_MAX: usize = 70;

/// Programs that compare other projects with this one.
const PEERS_FOLDER: &str = "bench/peers/";

/// The Python package, whose types are those of the library with the same names.
const PYTHON_FOLDER: &str = "python/";

/// A rule, with the file of its exceptions.
struct Rule {
    what: &'static str,
    accepted: &'static str,
}

const TYPE_NAMES: Rule =
    Rule { what: "is the name of several types", accepted: include_str!("../accepted/type_names.txt") };
const TUPLE_PARAMETERS: Rule =
    Rule { what: "takes an anonymous tuple", accepted: include_str!("../accepted/tuples.txt") };
const LONG_FUNCTIONS: Rule =
    Rule { what: "has more than 70 lines", accepted: include_str!("../accepted/long_functions.txt") };

/// What the rules need to know of all sources.
#[derive(Default)]
struct Items {
    /// The files that define a type of each name.
    types: BTreeMap<String, Vec<String>>,
    /// Functions, as `path: name`.
    tuples: BTreeSet<String>,
    long: BTreeSet<String>,
}

/// The items of a file.
struct FileItems<'a> {
    path: &'a str,
    items: &'a mut Items,
    /// Whether the code is part of a program, and not of a test.
    is_shipped: bool,
}

impl FileItems<'_> {
    fn add_type(&mut self, name: &syn::Ident) {
        if self.is_shipped && !self.path.starts_with(PYTHON_FOLDER) {
            self.items.types.entry(name.to_string()).or_default().push(self.path.to_string());
        }
    }

    fn add_function(&mut self, signature: &Signature, block: Option<&Block>) {
        let key = || format!("{}: {}", self.path, signature.ident);
        if self.is_shipped && signature.inputs.iter().any(is_anonymous_tuple) {
            self.items.tuples.insert(key());
        }
        let first = signature.span().start().line;
        if block.is_some_and(|block| block.span().end().line + 1 - first > LINES_MAX) {
            self.items.long.insert(key());
        }
    }
}

/// Whether a parameter is a tuple of unnamed parts.
fn is_anonymous_tuple(argument: &FnArg) -> bool {
    let FnArg::Typed(argument) = argument else { return false };
    let is_long = matches!(&*argument.ty, Type::Tuple(tuple) if tuple.elems.len() > 2);
    matches!(&*argument.pat, Pat::Tuple(_)) || is_long
}

impl<'ast> Visit<'ast> for FileItems<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let was_shipped = self.is_shipped;
        let is_test = module.attrs.iter().any(|attribute| {
            attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
        });
        self.is_shipped &= !is_test;
        visit::visit_item_mod(self, module);
        self.is_shipped = was_shipped;
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add_type(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add_type(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add_type(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add_function(&item.sig, Some(&item.block));
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add_function(&item.sig, Some(&item.block));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.add_function(&item.sig, item.default.as_ref());
        visit::visit_trait_item_fn(self, item);
    }
}

/// Exceptions that are not accepted, and accepted ones that do not exist, one line each.
pub fn find_problems(sources: &[File]) -> Vec<String> {
    let mut items = Items::default();
    for file in sources.iter().filter(|file| !file.path.starts_with(PEERS_FOLDER)) {
        let tree = syn::parse_file(&file.text);
        let tree = tree.unwrap_or_else(|error| panic!("{}: {error}", file.path));
        let is_shipped = !file.path.contains("/tests/") && !file.path.ends_with("/tests.rs");
        FileItems { path: &file.path, items: &mut items, is_shipped }.visit_file(&tree);
    }
    let several = items.types.into_iter().filter(|(_, files)| files.len() > 1);
    let several = several.map(|(name, files)| format!("{name}: {}", files.join(", "))).collect();
    [(TYPE_NAMES, several), (TUPLE_PARAMETERS, items.tuples), (LONG_FUNCTIONS, items.long)]
        .into_iter()
        .flat_map(|(rule, found)| rule.problems(&found))
        .collect()
}

impl Rule {
    fn problems(&self, found: &BTreeSet<String>) -> Vec<String> {
        let accepted: BTreeSet<String> = self.accepted.lines().map(str::to_string).collect();
        let new = found.difference(&accepted).map(|item| format!("{item} {}", self.what));
        let gone = accepted
            .difference(found)
            .map(|item| format!("{item}: accepted as one that {}, but is none; remove the line", self.what));
        new.chain(gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Items {
        let mut items = Items::default();
        let tree = syn::parse_file(text).unwrap();
        FileItems { path: "a.rs", items: &mut items, is_shipped: true }.visit_file(&tree);
        items
    }

    #[test]
    fn types_tuples_and_long_functions_are_found() {
        let tuples = "fn a((x, y): (u32, u32)) {} fn b(p: (u8, u8, u8)) {} fn c(range: (u32, u32)) {}
            #[cfg(test)] mod tests { struct T; fn d((x, y): (u32, u32)) {} } struct T;";
        let items = found(tuples);
        assert_eq!(items.tuples.into_iter().collect::<Vec<_>>(), ["a.rs: a", "a.rs: b"]);
        assert_eq!(items.types["T"].len(), 1);
        let of_lines = |lines: usize| format!("fn long() {{\n{}}}", "();\n".repeat(lines - 2));
        assert!(found(&of_lines(70)).long.is_empty() && !found(&of_lines(71)).long.is_empty());
    }

    #[test]
    fn an_exception_is_accepted_once_and_then_removed() {
        let rule = Rule { what: "is x", accepted: "a\nb\n" };
        let found = |names: &[&str]| rule.problems(&names.iter().map(|name| name.to_string()).collect());
        assert!(found(&["a", "b"]).is_empty());
        assert_eq!(found(&["a", "b", "c"]).len(), 1);
        assert_eq!(found(&["a"]).len(), 1);
    }
}

//! The paths of clients of OpenSearch and Elasticsearch.

mod limits;
mod queries;
mod rejected;
mod requests;
#[path = "../support/mod.rs"]
mod support;

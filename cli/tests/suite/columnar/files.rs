//! Articles as columns, and as lines of JSON.

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, StructArray,
};
use arrow_ipc::{CompressionType, writer::FileWriter, writer::IpcWriteOptions, writer::StreamWriter};
use arrow_schema::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{WriterProperties, WriterVersion};
use serde_json::{Value, json};
use std::{ops::Range, sync::Arc};

/// A document of the tests.
pub struct Article {
    pub id: String,
    pub title: Option<String>,
    pub body: String,
    pub tags: Option<Vec<String>>,
    pub lang: Option<&'static str>,
    pub year: Option<i32>,
    pub price: f64,
    pub flag: Option<bool>,
    pub author: Option<String>,
    pub pages: i32,
}

/// The article with a number. Each member of it is null for some numbers.
pub fn article(number: usize) -> Article {
    let words = (0..40 + number % 60).map(|word| format!("w{}", (number * 7919 + word * word * 31) % 2003));
    let tags = (0..number % 4).map(|tag| format!("tag{} of {number}", tag * number % 17)).collect();
    Article {
        id: format!("article-{number}"),
        title: (!number.is_multiple_of(3)).then(|| format!("Title {number}")),
        body: words.collect::<Vec<_>>().join(" ") + " größe \"quoted\" \\ 漢字",
        tags: (number % 5 != 1).then_some(tags),
        lang: [Some("en"), Some("de"), None, Some("fr")][number % 4],
        year: (number % 6 != 2).then_some(1900 + (number % 120) as i32),
        price: number as f64 / 4.0,
        flag: [Some(true), None, Some(false)][number % 3],
        author: (number % 9 != 4).then(|| format!("Jane Doe{}", number % 23)),
        pages: number as i32 - 5,
    }
}

/// The line of JSON of an article. Members that are null are left out, and the year is a text.
fn json_line(article: Article) -> Value {
    let Article { id, title, body, tags, lang, year, price, flag, author, pages } = article;
    let mut line = json!({ "id": id, "title": title, "body": body, "tags": tags, "lang": lang });
    line["year"] = year.map(|year| year.to_string()).into();
    line["price"] = price.into();
    line["flag"] = flag.into();
    line["meta"] = match author {
        Some(author) => json!({ "author": author, "pages": pages }),
        None => json!({ "pages": pages }),
    };
    line.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    line
}

pub fn json_lines(rows: Range<usize>) -> String {
    rows.map(|number| json_line(article(number)).to_string() + "\n").collect()
}

/// The articles in batches of some rows.
pub fn articles(rows: Range<usize>, batch_rows: usize) -> Vec<RecordBatch> {
    let starts = rows.clone().step_by(batch_rows);
    starts.map(|start| article_batch(start..rows.end.min(start + batch_rows))).collect()
}

fn article_batch(rows: Range<usize>) -> RecordBatch {
    let all: Vec<Article> = rows.map(article).collect();
    let mut tags = ListBuilder::new(StringBuilder::new());
    // A file has one dictionary of each column.
    let names = ["de", "en", "fr"];
    let languages = all.iter().map(|article| names.iter().position(|name| Some(*name) == article.lang));
    let languages: Int32Array = languages.map(|key| key.map(|key| key as i32)).collect();
    let names = Arc::new(StringArray::from(names.to_vec()));
    let languages = DictionaryArray::<Int32Type>::new(languages, names);
    for article in &all {
        match &article.tags {
            Some(values) => tags.append_value(values.iter().map(Some)),
            None => tags.append_null(),
        }
    }
    let authors: StringArray = all.iter().map(|article| article.author.as_deref()).collect();
    let pages: Int32Array = all.iter().map(|article| Some(article.pages)).collect();
    let meta = StructArray::from(vec![
        (Arc::new(Field::new("author", DataType::Utf8, true)), Arc::new(authors) as ArrayRef),
        (Arc::new(Field::new("pages", DataType::Int32, true)), Arc::new(pages) as ArrayRef),
    ]);
    let text = |value: &dyn Fn(&Article) -> Option<String>| -> ArrayRef {
        Arc::new(all.iter().map(value).collect::<StringArray>())
    };
    RecordBatch::try_from_iter_with_nullable([
        ("id", text(&|article| Some(article.id.clone())), true),
        ("title", text(&|article| article.title.clone()), true),
        ("body", text(&|article| Some(article.body.clone())), true),
        ("tags", Arc::new(tags.finish()) as ArrayRef, true),
        ("lang", Arc::new(languages), true),
        ("year", Arc::new(all.iter().map(|article| article.year).collect::<Int32Array>()), true),
        ("price", Arc::new(all.iter().map(|article| Some(article.price)).collect::<Float64Array>()), true),
        ("flag", Arc::new(all.iter().map(|article| article.flag).collect::<BooleanArray>()), true),
        ("meta", Arc::new(meta), true),
    ])
    .unwrap()
}

/// How a Parquet file is written.
#[derive(Clone, Copy)]
pub struct Layout {
    pub codec: Compression,
    /// With pages of version 2, and delta encodings.
    pub v2: bool,
    pub dictionary: bool,
    pub group_rows: usize,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout { codec: Compression::SNAPPY, v2: false, dictionary: true, group_rows: 1 << 20 }
    }
}

pub fn parquet_file(batches: &[RecordBatch], layout: Layout) -> Vec<u8> {
    let version = if layout.v2 { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
    let properties = WriterProperties::builder()
        .set_compression(layout.codec)
        .set_writer_version(version)
        .set_dictionary_enabled(layout.dictionary)
        .set_max_row_group_row_count(Some(layout.group_rows))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batches[0].schema(), Some(properties)).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn ipc_options(codec: Option<CompressionType>) -> IpcWriteOptions {
    IpcWriteOptions::default().try_with_compression(codec).unwrap()
}

pub fn arrow_file(batches: &[RecordBatch], codec: Option<CompressionType>) -> Vec<u8> {
    let schema = batches[0].schema();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, ipc_options(codec)).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

pub fn arrow_stream(batches: &[RecordBatch], codec: Option<CompressionType>) -> Vec<u8> {
    let schema = batches[0].schema();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, ipc_options(codec)).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

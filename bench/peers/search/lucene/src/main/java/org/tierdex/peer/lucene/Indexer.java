package org.tierdex.peer.lucene;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LogDocMergePolicy;
import org.apache.lucene.index.NoMergePolicy;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FSDirectory;

/**
 * Indexing: ids and frequencies with lengths, one thread. What was flushed is merged once, to one segment, in the order of the
 * documents, so that document numbers are ordinals.
 */
final class Indexer {
  static final String TOKENS = "tokens";

  private Indexer() {}

  /** Indexes the lines of a file into a directory; gives their number. */
  static int run(Path tokens, Path dir, long memory) throws IOException {
    try (Directory directory = FSDirectory.open(dir)) {
      int documents = write(tokens, directory, memory);
      merge(directory);
      return documents;
    }
  }

  private static int write(Path tokens, Directory directory, long memory) throws IOException {
    IndexWriterConfig config = new IndexWriterConfig(null);
    config.setOpenMode(IndexWriterConfig.OpenMode.CREATE);
    config.setRAMBufferSizeMB(memory / 1048576.0);
    config.setMergePolicy(NoMergePolicy.INSTANCE);
    config.setMergeScheduler(new SerialMergeScheduler());
    config.setUseCompoundFile(false);
    Blanks stream = new Blanks();
    Field field = new Field(TOKENS, stream, type());
    Document document = new Document();
    document.add(field);
    try (IndexWriter writer = new IndexWriter(directory, config);
        BufferedReader lines = Files.newBufferedReader(tokens)) {
      int documents = 0;
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        stream.of(line);
        writer.addDocument(document);
        documents++;
      }
      writer.commit();
      return documents;
    }
  }

  /** A policy that merges neighbours only keeps the order. */
  private static void merge(Directory directory) throws IOException {
    IndexWriterConfig config = new IndexWriterConfig(null);
    config.setOpenMode(IndexWriterConfig.OpenMode.APPEND);
    LogDocMergePolicy policy = new LogDocMergePolicy();
    policy.setMaxMergeDocs(Integer.MAX_VALUE);
    config.setMergePolicy(policy);
    config.setMergeScheduler(new SerialMergeScheduler());
    config.setUseCompoundFile(false);
    try (IndexWriter writer = new IndexWriter(directory, config)) {
      writer.forceMerge(1);
      writer.commit();
    }
  }

  private static FieldType type() {
    FieldType type = new FieldType();
    type.setIndexOptions(IndexOptions.DOCS_AND_FREQS);
    type.setTokenized(true);
    type.freeze();
    return type;
  }
}

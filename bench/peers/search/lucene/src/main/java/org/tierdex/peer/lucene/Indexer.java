package org.tierdex.peer.lucene;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LogDocMergePolicy;
import org.apache.lucene.index.NoMergePolicy;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FSDirectory;

/**
 * Indexing: ids and frequencies with lengths, optionally positions; one thread. Flushed segments
 * are merged once into one segment, in document order, so that document numbers are ordinals. With a commit
 * after each N documents, segments are never merged; the order is the same.
 */
final class Indexer {
  static final String TOKENS = "tokens";

  private final long memory;
  private final boolean positions;
  /** Documents between commits; 0 for one segment. */
  private final int every;

  Indexer(long memory, boolean positions, int every) {
    this.memory = memory;
    this.positions = positions;
    this.every = every;
  }

  /** Indexes the lines of a file into a directory; gives their number. */
  int run(Path tokens, Path dir) throws IOException {
    try (Directory directory = FSDirectory.open(dir)) {
      int documents = write(tokens, directory);
      if (every == 0) {
        merge(directory);
      }
      int wanted = every == 0 ? 1 : (documents + every - 1) / every;
      try (DirectoryReader reader = DirectoryReader.open(directory)) {
        int segments = reader.leaves().size();
        if (segments != wanted) {
          throw new IOException(
              "there are " + segments + " segments instead of " + wanted + "; give more --memory");
        }
      }
      return documents;
    }
  }

  private int write(Path tokens, Directory directory) throws IOException {
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
        if (every > 0 && documents % every == 0) {
          writer.commit();
        }
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

  private FieldType type() {
    FieldType type = new FieldType();
    type.setIndexOptions(
        positions ? IndexOptions.DOCS_AND_FREQS_AND_POSITIONS : IndexOptions.DOCS_AND_FREQS);
    type.setTokenized(true);
    type.freeze();
    return type;
  }
}

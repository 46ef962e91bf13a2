package org.tierdex.peer.lucene;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.FieldInfo;
import org.apache.lucene.index.FieldInfos;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.MMapDirectory;
import org.apache.lucene.store.ReadAdvice;

/** The line protocol: {@code COMMAND<TAB>QUERY}, a line of answer each, from an index in mapped files. */
final class Server implements AutoCloseable {
  private static final String UNSUPPORTED = "UNSUPPORTED";

  private final IndexReader reader;
  private final BM25Similarity similarity;
  /** Whether there are phrases. */
  private final boolean positions;

  Server(Path dir, Advice advice, BM25Similarity similarity) throws IOException {
    reader = DirectoryReader.open(mapped(dir, advice));
    this.similarity = similarity;
    FieldInfo field = FieldInfos.getMergedFieldInfos(reader).fieldInfo(Indexer.TOKENS);
    positions = field.getIndexOptions() == IndexOptions.DOCS_AND_FREQS_AND_POSITIONS;
  }

  /** A searcher for one thread: no cache of queries, one slice. */
  IndexSearcher searcher() {
    IndexSearcher searcher = new IndexSearcher(reader);
    searcher.setQueryCache(null);
    searcher.setSimilarity(similarity);
    return searcher;
  }

  @Override
  public void close() throws IOException {
    reader.close();
  }

  /** The line that answers a line. */
  String reply(String line) {
    try {
      if (line.startsWith("!BATCH\t")) {
        return Batch.run(this, line.substring("!BATCH\t".length()));
      }
      Answer answer = answer(searcher(), line);
      return answer == null ? UNSUPPORTED : answer.text();
    } catch (IOException | RuntimeException error) {
      return "ERROR " + String.valueOf(error.getMessage()).lines().findFirst().orElse(error.getClass().getName());
    }
  }

  /** A number, and hits where they were asked for. */
  record Answer(long number, ScoreDoc[] hits) {
    String text() {
      if (hits == null) {
        return Long.toString(number);
      }
      List<String> words = new ArrayList<>();
      for (ScoreDoc hit : hits) {
        words.add(hit.doc + ":" + hit.score);
      }
      return String.join(" ", words);
    }
  }

  /** The answer to a line; null if it is not supported. */
  Answer answer(IndexSearcher searcher, String line) throws IOException {
    int tab = line.indexOf('\t');
    Command command = tab < 0 ? null : Command.parse(line.substring(0, tab));
    Query query = command == null ? null : Parser.parse(line.substring(tab + 1), positions);
    if (query == null) {
      return null;
    }
    return switch (command.kind()) {
      case COUNT -> new Answer(searcher.count(query), null);
      case TOP -> new Answer(top(searcher, query, command.k(), command.k()).scoreDocs.length, null);
      case TOP_COUNT -> new Answer(top(searcher, query, command.k(), Integer.MAX_VALUE).totalHits.value(), null);
      case DOCS -> {
        ScoreDoc[] hits = top(searcher, query, command.k(), command.k()).scoreDocs;
        yield new Answer(hits.length, hits);
      }
    };
  }

  private static TopDocs top(IndexSearcher searcher, Query query, int k, int threshold) throws IOException {
    return searcher.search(query, new TopScoreDocCollectorManager(k, null, threshold));
  }

  /**
   * All files mapped; without advice they are read once so that they are in memory. Vector loops decode postings of mapped
   * files, not those of files on the heap.
   */
  private static MMapDirectory mapped(Path dir, Advice advice) throws IOException {
    MMapDirectory directory = new MMapDirectory(dir);
    switch (advice) {
      case NONE -> directory.setPreload(MMapDirectory.ALL_FILES);
      case NORMAL -> { }
      case RANDOM -> directory.setReadAdvice((name, context) -> Optional.of(ReadAdvice.RANDOM));
    }
    return directory;
  }
}

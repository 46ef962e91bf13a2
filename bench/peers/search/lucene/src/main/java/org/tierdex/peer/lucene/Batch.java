package org.tierdex.peer.lucene;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.lucene.search.IndexSearcher;

/** A batch: threads take lines from a shared counter, each with a searcher of its own; each line is timed. */
final class Batch {
  private static final int THREADS_MAX = 1024;

  private final Server server;
  private final List<String> lines;
  private final AtomicInteger next = new AtomicInteger();
  private final long[] nanoseconds;
  /** The number in each answer, -1 for lines that are not supported. */
  private final long[] values;

  private Batch(Server server, List<String> lines) {
    this.server = server;
    this.lines = lines;
    nanoseconds = new long[lines.size()];
    values = new long[lines.size()];
  }

  /** Runs {@code FILE<TAB>THREADS<TAB>LATENCIES}; returns its summary as a JSON object. */
  static String run(Server server, String words) throws IOException {
    String[] parts = words.split("\t");
    if (parts.length != 3) {
      throw new IOException("!BATCH needs a file, a number of threads, and a file for latencies or -");
    }
    int threads = threads(parts[1]);
    List<String> lines = Files.readAllLines(Path.of(parts[0])).stream().filter(line -> !line.isEmpty()).toList();
    Batch batch = new Batch(server, lines);
    long wall = batch.run(threads);
    if (!parts[2].equals("-")) {
      Files.write(Path.of(parts[2]), Arrays.stream(batch.nanoseconds).mapToObj(Long::toString).toList());
    }
    return batch.summary(wall);
  }

  private static int threads(String word) throws IOException {
    try {
      int threads = Integer.parseInt(word);
      if (threads >= 1 && threads <= THREADS_MAX) {
        return threads;
      }
    } catch (NumberFormatException error) {
      // Said below.
    }
    throw new IOException("`" + word + "` is no number of threads from 1 to " + THREADS_MAX);
  }

  private long run(int threads) throws IOException {
    try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
      long start = System.nanoTime();
      List<Future<?>> workers = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        workers.add(pool.submit(this::work));
      }
      for (Future<?> worker : workers) {
        worker.get();
      }
      return System.nanoTime() - start;
    } catch (ExecutionException | InterruptedException error) {
      throw new IOException("a worker stopped: " + error.getMessage());
    }
  }

  /** Takes and answers lines until none is left. */
  private Void work() throws IOException {
    IndexSearcher searcher = server.searcher();
    for (int line = next.getAndIncrement(); line < lines.size(); line = next.getAndIncrement()) {
      long start = System.nanoTime();
      Server.Answer answer = server.answer(searcher, lines.get(line));
      nanoseconds[line] = System.nanoTime() - start;
      values[line] = answer == null ? -1 : answer.number();
    }
    return null;
  }

  private String summary(long wall) {
    long[] sorted = nanoseconds.clone();
    Arrays.sort(sorted);
    long sum = Arrays.stream(values).filter(value -> value >= 0).sum();
    long unsupported = Arrays.stream(values).filter(value -> value < 0).count();
    return "{\"n\":%d,\"wall_ns\":%d,\"p50_ns\":%d,\"p99_ns\":%d,\"max_ns\":%d,\"sum\":%d,\"unsupported\":%d}"
        .formatted(sorted.length, wall, at(sorted, 50), at(sorted, 99), at(sorted, 100), sum, unsupported);
  }

  private static long at(long[] sorted, int percent) {
    int last = sorted.length - 1;
    return last < 0 ? 0 : sorted[Math.min((int) ((long) sorted.length * percent / 100), last)];
  }
}

// SPDX-License-Identifier: BSD-3-Clause
// SPDX-FileCopyrightText: The shunt authors

// What java.nio.file, java.nio.channels and java.io offer for files, in the working directory, by one thread and by
// many. Prints what each call gave, or the exception it threw. Runs as `java FileProgram.java`.

import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.RandomAccessFile;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.AsynchronousFileChannel;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.*;
import java.nio.file.attribute.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

import static java.nio.file.StandardCopyOption.*;
import static java.nio.file.StandardOpenOption.*;

public class FileProgram {
    static final Path TOP = Path.of("").toAbsolutePath();
    static final FileTime TIME = FileTime.from(1_700_000_000_123_456_789L, TimeUnit.NANOSECONDS);

    interface Call {
        Object call() throws Exception;
    }

    static void attempt(String name, Call call) {
        Object value;
        try {
            value = call.call();
        } catch (Exception e) {
            value = e.getClass().getSimpleName() + " " + e.getMessage();
        }
        System.out.println(name + ": " + String.valueOf(value).replace(TOP.toString(), "TOP"));
    }

    static Path path(String first, Object... more) {
        return Path.of(String.format(first, more));
    }

    static Path make(String name, String text) throws IOException {
        return Files.writeString(Path.of(name), text);
    }

    static List<String> sorted(Stream<Path> paths) {
        try (paths) {
            return paths.map(Path::toString).sorted().collect(Collectors.toList());
        }
    }

    static void making() throws Exception {
        attempt("directories", () -> Files.createDirectories(Path.of("made/a/b/c")));
        attempt("directories again", () -> Files.createDirectories(Path.of("made/a/b/c")));
        attempt("directory again", () -> Files.createDirectory(Path.of("made/a")));
        attempt("file", () -> Files.createFile(Path.of("made/file")));
        attempt("file again", () -> Files.createFile(Path.of("made/file")));
        attempt("in no directory", () -> Files.createFile(Path.of("made/none/file")));
        attempt("below a file", () -> Files.createFile(Path.of("made/file/below")));
        attempt("with a mode", () -> Files.createFile(Path.of("made/private"),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))));
        attempt("link", () -> Files.createLink(Path.of("made/linked"), Path.of("made/file")));
        attempt("symbolic", () -> Files.createSymbolicLink(Path.of("made/symbolic"), Path.of("linked")));
        attempt("read link", () -> Files.readSymbolicLink(Path.of("made/symbolic")));
        attempt("read no link", () -> Files.readSymbolicLink(Path.of("made/file")));
        attempt("same", () -> Files.isSameFile(Path.of("made/file"), Path.of("made/a/../symbolic")));
        attempt("real", () -> Path.of("made/a/b/../../symbolic").toRealPath());
        attempt("temporary file", () -> Files.size(Files.createTempFile(Path.of("made"), "t", ".x")));
        attempt("temporary directory", () ->
            Files.isDirectory(Files.createTempDirectory(Path.of("made"), "d")));
        attempt("old temporary file", () -> File.createTempFile("old", null, new File("made")).delete());
    }

    static void reading() throws Exception {
        Path file = make("made/text", "one\ntwo\nthree\n");
        attempt("lines", () -> Files.readAllLines(file));
        attempt("append", () -> Files.writeString(file, "four\n", APPEND));
        attempt("exclusive", () -> Files.writeString(file, "x", CREATE_NEW));
        attempt("existing only", () -> Files.writeString(Path.of("made/none"), "x", WRITE));
        attempt("truncate", () -> Files.writeString(Path.of("made/private"), "short", TRUNCATE_EXISTING, WRITE));
        attempt("read", () -> Files.readString(file));
        attempt("read missing", () -> Files.readString(Path.of("made/none")));
        attempt("read a directory", () -> Files.readString(Path.of("made")));
        attempt("mismatch", () -> Files.mismatch(file, Path.of("made/private")));
        attempt("deleted on close", () -> {
            try (var out = Files.newOutputStream(Path.of("made/brief"), CREATE_NEW, DELETE_ON_CLOSE)) {
                out.write(1);
                return Files.exists(Path.of("made/brief"));
            }
        });
        attempt("not there", () -> Files.notExists(Path.of("made/brief")));
        try (var writer = new PrintWriter("made/printed")) {
            for (int i = 0; i < 10000; i++) writer.println(i);
        }
        attempt("printed", () -> Files.lines(Path.of("made/printed")).mapToInt(Integer::parseInt).sum());
        attempt("executable", () -> new File("made/text").setExecutable(true) && new File("made/text").canExecute());
        attempt("read only", () -> new File("made/printed").setReadOnly());
    }

    static void attributes() throws Exception {
        Path file = Path.of("made/text");
        attempt("times", () -> {
            Files.getFileAttributeView(file, BasicFileAttributeView.class).setTimes(TIME, TIME, null);
            return Files.getLastModifiedTime(file);
        });
        attempt("time of a directory", () -> {
            Files.setLastModifiedTime(Path.of("made/a"), TIME);
            return Files.getLastModifiedTime(Path.of("made/a"));
        });
        attempt("posix", () -> {
            var read = Files.readAttributes(file, PosixFileAttributes.class);
            return read.size() + " " + read.isRegularFile() + " " + PosixFilePermissions.toString(read.permissions())
                + " " + read.owner() + " " + read.group();
        });
        attempt("all of unix", () -> new TreeSet<>(Files.readAttributes(file, "unix:*").keySet()));
        attempt("links", () -> Files.getAttribute(Path.of("made/file"), "unix:nlink"));
        attempt("one inode", () -> Files.getAttribute(Path.of("made/file"), "unix:ino")
            .equals(Files.getAttribute(Path.of("made/linked"), "unix:ino")));
        attempt("mode", () -> Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-x--x")));
        attempt("of a link", () -> Files.readAttributes(Path.of("made/symbolic"), BasicFileAttributes.class,
            LinkOption.NOFOLLOW_LINKS).isSymbolicLink());
        attempt("user attributes", () -> {
            var view = Files.getFileAttributeView(file, UserDefinedFileAttributeView.class);
            view.write("colour", ByteBuffer.wrap("red".getBytes()));
            view.write("shape", ByteBuffer.wrap("round".getBytes()));
            view.delete("shape");
            return view.list() + " " + view.size("colour");
        });
        attempt("hidden", () -> Files.isHidden(Path.of("made/.x")));
        attempt("content type", () -> Files.probeContentType(Path.of("made/page.html")));
        attempt("store", () -> Files.getFileStore(file).equals(Files.getFileStore(Path.of("made"))));
        attempt("of nothing", () -> Files.getLastModifiedTime(Path.of("made/none")));
    }

    static void moving() throws Exception {
        make("made/one", "1");
        make("made/two", "22");
        attempt("copy", () -> Files.copy(Path.of("made/text"), Path.of("made/copied"), COPY_ATTRIBUTES));
        attempt("copied time", () -> Files.getLastModifiedTime(Path.of("made/copied")));
        attempt("copy again", () -> Files.copy(Path.of("made/text"), Path.of("made/copied")));
        attempt("copy over", () -> Files.copy(Path.of("made/one"), Path.of("made/copied"), REPLACE_EXISTING));
        attempt("copy a link", () -> Files.copy(Path.of("made/symbolic"), Path.of("made/symbolic2"),
            LinkOption.NOFOLLOW_LINKS));
        attempt("copy a directory", () -> Files.copy(Path.of("made/a"), Path.of("made/e")));
        attempt("move", () -> Files.move(Path.of("made/one"), Path.of("made/moved")));
        attempt("move onto", () -> Files.move(Path.of("made/two"), Path.of("made/moved")));
        attempt("move over", () -> Files.move(Path.of("made/two"), Path.of("made/moved"), REPLACE_EXISTING));
        attempt("move atomically", () -> Files.move(Path.of("made/moved"), Path.of("made/copied"), ATOMIC_MOVE));
        attempt("move a directory", () -> Files.move(Path.of("made/a"), Path.of("made/z")));
        attempt("move onto a full one", () -> Files.move(Path.of("made/e"), Path.of("made/z"), REPLACE_EXISTING));
        attempt("move nothing", () -> Files.move(Path.of("made/none"), Path.of("made/y")));
        attempt("move out and in", () -> {
            Path outside = TOP.resolveSibling("outside-of-java");
            Files.move(Path.of("made/copied"), outside);
            return Files.readString(Files.move(outside, Path.of("made/back")));
        });
        attempt("old rename", () -> new File("made/back").renameTo(new File("made/renamed")));
        attempt("delete", () -> Files.deleteIfExists(Path.of("made/renamed")));
        attempt("delete again", () -> Files.deleteIfExists(Path.of("made/renamed")));
        attempt("delete nothing", () -> {
            Files.delete(Path.of("made/renamed"));
            return "deleted";
        });
        attempt("delete a full directory", () -> Files.deleteIfExists(Path.of("made/z")));
        attempt("old delete", () -> new File("made/z").delete());
    }

    static void walking() throws Exception {
        for (int i = 0; i < 300; i++) {
            Files.createDirectories(path("tree/d%d/e%d", i % 7, i % 5));
            make(String.format("tree/d%d/e%d/file-%d.%s", i % 7, i % 5, i, i % 2 == 0 ? "txt" : "bin"), "x".repeat(i));
        }
        Files.createSymbolicLink(Path.of("tree/loop"), Path.of("."));
        attempt("walk", () -> sorted(Files.walk(Path.of("tree"))).hashCode());
        attempt("walk with a loop", () -> sorted(Files.walk(Path.of("tree"), FileVisitOption.FOLLOW_LINKS)));
        attempt("list", () -> sorted(Files.list(Path.of("tree/d3/e1"))));
        attempt("find", () -> sorted(Files.find(Path.of("tree"), 9, (p, a) -> a.size() == 99)));
        attempt("by pattern", () -> {
            var found = new TreeSet<String>();
            try (var stream = Files.newDirectoryStream(Path.of("tree/d2/e2"), "*.{txt}")) {
                stream.forEach(p -> found.add(p.toString()));
            }
            return found;
        });
        attempt("relative to a directory", () -> {
            try (var stream = Files.newDirectoryStream(Path.of("tree"))) {
                var secure = (SecureDirectoryStream<Path>) stream;
                secure.newByteChannel(Path.of("secure"), Set.of(CREATE_NEW, WRITE)).close();
                try (var inner = secure.newDirectoryStream(Path.of("d1"))) {
                    secure.move(Path.of("secure"), inner, Path.of("moved"));
                    var view = inner.getFileAttributeView(Path.of("moved"), PosixFileAttributeView.class);
                    view.setPermissions(PosixFilePermissions.fromString("rw-rw-rw-"));
                    view.setTimes(TIME, TIME, null);
                    return view.readAttributes().lastModifiedTime();
                }
            }
        });
        attempt("moved", () -> Files.getPosixFilePermissions(Path.of("tree/d1/moved")).size());
        attempt("remove all but one", () -> {
            Files.walkFileTree(Path.of("tree"), new SimpleFileVisitor<>() {
                public FileVisitResult visitFile(Path file, BasicFileAttributes a) throws IOException {
                    if (!file.endsWith("file-0.txt")) Files.delete(file);
                    return FileVisitResult.CONTINUE;
                }

                public FileVisitResult postVisitDirectory(Path dir, IOException e) throws IOException {
                    try {
                        Files.delete(dir);
                    } catch (DirectoryNotEmptyException full) {
                        System.out.println("full: " + dir);
                    }
                    return FileVisitResult.CONTINUE;
                }
            });
            return sorted(Files.walk(Path.of("tree")));
        });
        attempt("old list", () -> List.of(new File("tree/d0/e0").list()));
        attempt("old list of nothing", () -> new File("none").list());
    }

    static void channels() throws Exception {
        Path file = Path.of("channel");
        try (var channel = FileChannel.open(file, CREATE, READ, WRITE, SPARSE)) {
            attempt("write", () -> channel.write(ByteBuffer.wrap("0123456789".getBytes())));
            attempt("write at", () -> channel.write(ByteBuffer.wrap("end".getBytes()), 99_997));
            attempt("size", channel::size);
            MappedByteBuffer map = channel.map(FileChannel.MapMode.READ_WRITE, 0, 100_000);
            map.put(50_000, (byte) 7);
            map.force();
            attempt("mapped", () -> map.get(50_000) + " " + map.get(99_999));
            attempt("read", () -> {
                var buffer = ByteBuffer.allocate(1);
                channel.read(buffer, 50_000);
                return buffer.get(0);
            });
            attempt("lock", () -> {
                try (FileLock lock = channel.lock(0, 10, false)) {
                    return lock.isValid() + " " + another("lock", "channel");
                }
            });
            attempt("unlocked", () -> another("lock", "channel"));
            attempt("overlapping", () -> {
                try (FileLock lock = channel.lock()) {
                    return channel.tryLock(5, 1, false);
                }
            });
            attempt("transfer", () -> {
                try (var to = FileChannel.open(Path.of("transferred"), CREATE_NEW, WRITE)) {
                    return channel.transferTo(0, channel.size(), to) + " " + to.transferFrom(channel, 3, 5);
                }
            });
            channel.truncate(1000);
            channel.force(true);
        }
        attempt("mismatch", () -> Files.mismatch(file, Path.of("transferred")));
        try (var random = new RandomAccessFile("random", "rwd")) {
            random.setLength(4096);
            random.seek(4000);
            random.writeLong(42);
            random.seek(4000);
            attempt("random", () -> random.readLong() + " " + random.length());
        }
        attempt("asynchronous", () -> {
            try (var channel = AsynchronousFileChannel.open(Path.of("asynchronous"), CREATE, WRITE, READ)) {
                channel.write(ByteBuffer.wrap("later".getBytes()), 10).get();
                var buffer = ByteBuffer.allocate(20);
                return channel.read(buffer, 5).get() + " " + channel.size();
            }
        });
    }

    static void sockets() throws Exception {
        var address = UnixDomainSocketAddress.of("door");
        try (var server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            server.bind(address);
            try (var client = SocketChannel.open(address); var peer = server.accept()) {
                peer.write(ByteBuffer.wrap("welcome".getBytes()));
                var buffer = ByteBuffer.allocate(7);
                attempt("said", () -> client.read(buffer) + new String(buffer.array()));
            }
            attempt("other", () -> Files.readAttributes(Path.of("door"), BasicFileAttributes.class).isOther());
        }
        attempt("taken", () -> ServerSocketChannel.open(StandardProtocolFamily.UNIX).bind(address));
        Files.delete(Path.of("door"));
    }

    static void archive() throws Exception {
        var uri = URI.create("jar:" + Path.of("archive.zip").toUri());
        try (var zip = FileSystems.newFileSystem(uri, Map.of("create", "true"))) {
            for (int i = 0; i < 50; i++) Files.writeString(zip.getPath("/file-" + i), "text ".repeat(i));
        }
        try (var zip = FileSystems.newFileSystem(uri, Map.of())) {
            Files.delete(zip.getPath("/file-3"));
            Files.copy(zip.getPath("/file-40"), Path.of("unpacked"));
        }
        try (var zip = FileSystems.newFileSystem(uri, Map.of())) {
            attempt("archive", () -> sorted(Files.list(zip.getPath("/"))).size());
        }
        Files.delete(Path.of("archive.zip"));
    }

    static void manyThreads() throws Exception {
        Files.createDirectory(Path.of("threads"));
        var pool = Executors.newFixedThreadPool(16);
        var made = new ConcurrentSkipListMap<String, Integer>();
        var jobs = IntStream.range(0, 2000).mapToObj(n -> (Callable<Void>) () -> {
            Path file = path("threads/file-%d", n);
            Files.writeString(file, "n" + n, CREATE_NEW);
            if (n % 3 == 0) Files.move(file, path("threads/moved-%d", n), ATOMIC_MOVE);
            if (n % 5 == 1) Files.deleteIfExists(file);
            try {
                Files.createFile(path("threads/once-%d", n % 100));
                made.merge("made", 1, Integer::sum);
            } catch (FileAlreadyExistsException e) {
                made.merge("there", 1, Integer::sum);
            }
            return null;
        }).collect(Collectors.toList());
        for (var future : pool.invokeAll(jobs)) future.get();
        pool.shutdown();
        System.out.println("threads: " + made);
        attempt("names", () -> sorted(Files.list(Path.of("threads"))).hashCode());
    }

    /** Runs this program in another process, to see what that sees. */
    static String another(String... words) throws Exception {
        var command = new ArrayList<>(List.of(ProcessHandle.current().info().command().orElseThrow(),
            System.getProperty("program")));
        command.addAll(List.of(words));
        var process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes()).strip();
        return said + " status " + process.waitFor();
    }

    static void processes() throws Exception {
        make("script", "#!/bin/sh\necho a script in $(basename \"$PWD\") > said\ncat said\n");
        new File("script").setExecutable(true);
        attempt("script", () -> {
            var process = new ProcessBuilder(TOP.resolve("script").toString()).directory(new File("made")).start();
            return new String(process.getInputStream().readAllBytes()).strip() + " " + process.waitFor();
        });
        attempt("redirected", () -> new ProcessBuilder("cat").redirectInput(new File("script"))
            .redirectOutput(new File("redirected")).start().waitFor() + " " + new File("redirected").length());
        attempt("no such program", () -> new ProcessBuilder("./none").start());
    }

    static void tryLock(String name) throws IOException {
        try (var channel = FileChannel.open(Path.of(name), WRITE)) {
            FileLock lock = channel.tryLock(0, 10, false);
            System.out.println(lock == null ? "locked by another" : "free");
        } catch (OverlappingFileLockException e) {
            System.out.println("overlapping");
        }
    }

    interface Part {
        void run() throws Exception;
    }

    public static void main(String[] words) throws Exception {
        if (words.length == 2) {
            tryLock(words[1]);
            return;
        }
        var parts = new LinkedHashMap<String, Part>();
        parts.put("making", FileProgram::making);
        parts.put("reading", FileProgram::reading);
        parts.put("attributes", FileProgram::attributes);
        parts.put("moving", FileProgram::moving);
        parts.put("walking", FileProgram::walking);
        parts.put("channels", FileProgram::channels);
        parts.put("sockets", FileProgram::sockets);
        parts.put("archive", FileProgram::archive);
        parts.put("manyThreads", FileProgram::manyThreads);
        parts.put("processes", FileProgram::processes);
        for (var part : parts.entrySet()) {
            System.out.println("== " + part.getKey());
            part.getValue().run();
        }
        for (String name : sorted(Files.list(Path.of("made"))))
            if (name.matches("made/(t\\d+\\.x|d\\d+)")) Files.delete(Path.of(name));
        System.exit(0);
    }
}

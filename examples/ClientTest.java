// A test of a client of petstore, to start from (Java 17 or newer). Copy this file
// into your own project, put the binary of petstore into the folder in which the
// test runs, and run "java ClientTest.java". With JUnit, write @Test before
// createIsRetried, and leave out main.
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.regex.Pattern;

class ClientTest {
    /** The path of the binary. */
    static final Path PETSTORE =
        Path.of(System.getProperty("os.name").startsWith("Windows") ? "petstore.exe" : "petstore").toAbsolutePath();

    static final HttpClient http = HttpClient.newHttpClient();

    /** The client under test: put yours in its place. It tries up to four times. */
    static void createPet(String base, String pet) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(base + "/pets"))
            .timeout(Duration.ofSeconds(5)) // for the headers alone
            .header("Authorization", "Bearer test")
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(pet))
            .build();
        for (int tries = 1; ; tries++) {
            try {
                var response = http.send(request, BodyHandlers.ofString());
                if (response.statusCode() < 400) return;
                throw new IOException(response.statusCode() + " " + response.body());
            } catch (IOException e) {
                if (tries == 4) throw e;
            }
        }
    }

    void createIsRetried() throws Exception {
        try (var petstore = Petstore.start()) {
            // The first request gets an error, the second a reset connection, and the
            // third no answer, although its pet is added. So there are two pets.
            petstore.admin("PUT", "/__admin/fault?code=503,rst,lost&operation=createPet");
            createPet(petstore.base(), "{\"name\":\"Rex\",\"categoryId\":7}");

            // In strings of the journal, quotes have a backslash, so these are its statuses.
            var statuses = find("\"status\":(\\d+)", petstore.admin("GET", "/__admin/requests"));
            equal(statuses, List.of("503", "0", "0", "201"));
            equal(find("(\"id\":)", petstore.admin("GET", "/v1/pets?limit=100")).size(), 2);
        }
    }

    public static void main(String[] args) throws Exception {
        new ClientTest().createIsRetried();
        System.out.println("ok - createPet is retried");
    }

    /** A petstore for one test, with the base URL of its API, such as http://127.0.0.1:54321/v1. */
    record Petstore(Process process, String base) implements AutoCloseable {
        static Petstore start() throws IOException {
            if (!Files.isRegularFile(PETSTORE)) {
                throw new IOException("there is no " + PETSTORE + ": build petstore first, or change PETSTORE");
            }
            var builder = new ProcessBuilder(PETSTORE.toString(), "-addr", "127.0.0.1:0", "-stdin");
            builder.environment().put("PETSTORE_API_KEY", "test");
            builder.redirectError(ProcessBuilder.Redirect.INHERIT); // petstore reports why it cannot start
            var process = builder.start();
            var base = process.inputReader().readLine();
            if (base == null) throw new IOException("petstore did not start; standard error says why");
            return new Petstore(process, base);
        }

        /** Sends a request of the test itself, which is not recorded and to which no fault is applied. */
        String admin(String method, String path) throws Exception {
            var request = HttpRequest.newBuilder(URI.create(base).resolve(path))
                .timeout(Duration.ofSeconds(10))
                .header("Authorization", "Bearer test")
                .header("Petstore-Observer", "test")
                .method(method, HttpRequest.BodyPublishers.noBody())
                .build();
            var response = http.send(request, BodyHandlers.ofString());
            if (response.statusCode() >= 400) throw new IOException(method + " " + path + ": " + response.body());
            return response.body();
        }

        /** Stops petstore by closing its standard input, as happens when this process is killed. */
        @Override
        public void close() throws IOException {
            process.getOutputStream().close();
        }
    }

    /** Returns the first group of each match. */
    static List<String> find(String regex, String text) {
        return Pattern.compile(regex).matcher(text).results().map(match -> match.group(1)).toList();
    }

    static void equal(Object got, Object want) {
        if (!got.equals(want)) throw new AssertionError("got " + got + ", want " + want);
    }
}

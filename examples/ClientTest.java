// Tests of a client of petstore, to start from (Java 17 or newer). Copy this file into
// your own project, put the binary of petstore into the folder in which the tests run,
// and run "java ClientTest.java". With JUnit, import org.junit.jupiter.api.Test, write
// @Test before each of the four tests, and leave out main, Body and passes.
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;

class ClientTest {
    static final HttpClient http = HttpClient.newHttpClient();

    /**
     * The client under test: put yours in its place. It tries up to this many times, and
     * gives up each try after the timeout. It throws an exception unless it got the pet.
     */
    static void createPet(String base, int tries, Duration timeout) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(base + "/pets"))
            .header("Authorization", "Bearer " + Petstore.KEY)
            .header("Content-Type", "application/json")
            .POST(BodyPublishers.ofString("{\"name\":\"Rex\",\"categoryId\":7}"))
            .build();
        while (true) {
            String problem;
            long retryAfter = 0;
            var future = http.sendAsync(request, BodyHandlers.ofString());
            try {
                var response = future.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
                if (response.statusCode() < 400) return;
                problem = response.statusCode() + " " + response.body();
                retryAfter = response.headers().firstValueAsLong("Retry-After").orElse(0);
            } catch (ExecutionException | TimeoutException e) {
                future.cancel(true); // or the request would go on
                problem = e.toString();
            }
            if (--tries == 0) throw new IOException("createPet: " + problem);
            Thread.sleep(retryAfter * 1000);
        }
    }

    // The first request gets an error, the second a reset connection, and the third no
    // answer, although its pet is added. So there are two pets, and a try is left.
    void triesAgain() throws Exception {
        try (var petstore = Petstore.start()) {
            petstore.fault("code=503,rst,lost&operation=createPet");
            var problem = problemOf(petstore.base(), 5, 5);
            equal("the statuses", petstore.statuses(), List.of(503, 0, 0, 201), problem);
            equal("the exception", problem, null, problem);
            equal("the number of pets", petstore.pets(), 2, null);
        }
    }

    // The status 201 and half of the body arrive, and no more. After 30 seconds, petstore
    // closes the connection, and the client fails, too. So only the time shows that it gave
    // up. Up to Java 25, the timeout of HttpRequest.Builder is for the headers alone.
    void givesUpInTime() throws Exception {
        try (var petstore = Petstore.start()) {
            petstore.fault("code=stall&times=1");
            var begin = System.nanoTime();
            var problem = problemOf(petstore.base(), 1, 2);
            var seconds = (System.nanoTime() - begin) / 1_000_000_000;
            if (seconds >= 10) throw new AssertionError("createPet took " + seconds + " s, want 2 s", problem);
            equal("the statuses", petstore.statuses(), List.of(201), problem);
            if (problem == null) throw new AssertionError("createPet returned, want an exception");
        }
    }

    // The first answer is late. The client gives up, and tries again, although its first
    // pet was added.
    void triesAgainAfterTimeout() throws Exception {
        try (var petstore = Petstore.start()) {
            petstore.reset("[{\"name\":\"Ace\",\"categoryId\":9}]");
            petstore.fault("answer-delay=10&times=1");
            var problem = problemOf(petstore.base(), 2, 2);
            equal("the statuses", petstore.statuses(), List.of(0, 201), problem);
            equal("the exception", problem, null, problem);
            equal("the number of pets", petstore.pets(), 3, null);
        }
    }

    // Each answer asks the client to wait for two seconds, longer than any wait of its
    // own. It waits, tries again, and gives up after two tries.
    void obeysRetryAfterAndGivesUp() throws Exception {
        try (var petstore = Petstore.start()) {
            petstore.fault("code=503&times=2&retry-after=2");
            var problem = problemOf(petstore.base(), 2, 5);
            equal("the statuses", petstore.statuses(), List.of(503, 503), problem);
            if (problem == null) throw new AssertionError("createPet returned, want an exception");
            var requests = petstore.requests();
            var gap = Duration.between(requests.get(0).time(), requests.get(1).time()).toMillis();
            if (gap < 1900) throw new AssertionError("the second request came after " + gap + " ms, want 2000 ms");
        }
    }

    public static void main(String[] args) {
        var tests = new ClientTest();
        var passed = passes("triesAgain", tests::triesAgain)
            & passes("givesUpInTime", tests::givesUpInTime)
            & passes("triesAgainAfterTimeout", tests::triesAgainAfterTimeout)
            & passes("obeysRetryAfterAndGivesUp", tests::obeysRetryAfterAndGivesUp);
        System.exit(passed ? 0 : 1);
    }

    /** A test, as main calls it. */
    interface Body {
        void run() throws Exception;
    }

    static boolean passes(String name, Body test) {
        try {
            test.run();
            System.out.println("ok - " + name);
            return true;
        } catch (Exception | AssertionError e) {
            System.out.println("FAILED - " + name + ": " + e.getMessage());
            if (e.getCause() != null) System.out.println("    " + e.getCause());
            return false;
        }
    }

    /** Calls the client, and returns the exception that it throws, or null. */
    static Exception problemOf(String base, int tries, int seconds) {
        try {
            createPet(base, tries, Duration.ofSeconds(seconds));
            return null;
        } catch (Exception e) {
            return e;
        }
    }

    static void equal(String what, Object got, Object want, Exception cause) {
        if (!Objects.equals(got, want)) throw new AssertionError(what + ": got " + got + ", want " + want, cause);
    }

    /** A petstore for one test, with the base URL of its API, such as http://127.0.0.1:54321/v1. */
    record Petstore(Process process, String base) implements AutoCloseable {
        /** The path of the binary. Windows finds petstore.exe by itself. */
        static final String PATH = "./petstore";

        /** The key of this run, so that no other petstore can answer. */
        static final String KEY = UUID.randomUUID().toString();

        static Petstore start() throws IOException {
            var builder = new ProcessBuilder(PATH, "-addr", "127.0.0.1:0", "-stdin");
            builder.environment().put("PETSTORE_API_KEY", KEY);
            builder.redirectError(ProcessBuilder.Redirect.INHERIT); // there petstore says why it cannot start
            Process process;
            try {
                process = builder.start();
            } catch (IOException e) {
                throw new IOException(e.getMessage() + ": build petstore first, or change Petstore.PATH");
            }
            var base = process.inputReader().readLine();
            if (base == null) throw new IOException("petstore did not start; standard error may say why");
            return new Petstore(process, base);
        }

        /** Stops petstore by closing its standard input, as happens when this process is killed. */
        @Override
        public void close() throws IOException {
            process.getOutputStream().close();
        }

        /** Replaces the pets, ends the fault, and clears the journal. */
        void reset(String pets) throws Exception {
            send("POST", "/__admin/reset", pets);
        }

        void fault(String query) throws Exception {
            send("PUT", "/__admin/fault?" + query, "");
        }

        /** Returns the number of pets. */
        int pets() throws Exception {
            return send("GET", "/v1/pets?limit=100", "").split("\"id\":").length - 1;
        }

        record Request(int status, Instant time) {}

        /**
         * Returns the requests of clients in the order in which they arrived. It waits
         * until none waits: one that was given up is recorded a moment later.
         */
        List<Request> requests() throws Exception {
            var journal = send("GET", "/__admin/requests?waiting=0", "");
            // Each request has a line. Within strings, quotes have a backslash.
            return Pattern.compile("\"id\":\\d+,\"time\":\"(.*?)\".*\"status\":(\\d+)").matcher(journal).results()
                .map(match -> new Request(Integer.parseInt(match.group(2)), Instant.parse(match.group(1))))
                .toList();
        }

        /** Returns the statuses of the requests, where 0 is no answer. */
        List<Integer> statuses() throws Exception {
            return requests().stream().map(Request::status).toList();
        }

        /** Sends a request of the test itself, which is not recorded and gets no fault. */
        String send(String method, String path, String body) throws Exception {
            var request = HttpRequest.newBuilder(URI.create(base).resolve(path))
                .timeout(Duration.ofSeconds(40)) // as petstore waits for up to 30
                .header("Authorization", "Bearer " + KEY)
                .header("Petstore-Observer", "test")
                .method(method, BodyPublishers.ofString(body))
                .build();
            var response = http.send(request, BodyHandlers.ofString());
            if (response.statusCode() >= 400) throw new IOException(method + " " + path + ": " + response.body());
            return response.body();
        }
    }
}

// Tests of a client of petstore, to start from (Java 17 or newer). Copy this file into your own
// project, build petstore into the folder in which the tests run, and run
// "java PetstoreTest.java". Then put your client in the place of the one below. With JUnit,
// import org.junit.jupiter.api.Test, write @Test before each of the five tests, and leave out
// main and passes. There, TestInfo has the name of a test, too.
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.LongStream;

class PetstoreTest {
    /**
     * Whether your client repeats a POST of which it did not get the whole answer, so that a pet
     * may be added twice. You decide; the tests expect what this says.
     */
    static final boolean REPEATS_LOST_POST = false;

    /**
     * Makes the client under test: put yours in the place of all from here down to the line, or
     * let this Client call it. The tests use newClient, Client, createPet, listPets and id alone.
     * It tries a request up to this many times, and gives up each try after the timeout.
     */
    static Client newClient(String base, String key, int tries, Duration timeout) {
        return new Client(base, key, tries, timeout, HttpClient.newHttpClient());
    }

    // By itself, java.net.http sends a GET once more if its connection is lost. With this property,
    // which must be set before the first request of the process, it sends each request once. Then
    // it follows no redirect, and "Too many retries" may mean that a connection was lost.
    static {
        System.setProperty("jdk.httpclient.redirects.retrylimit", "1");
    }

    record Pet(long id, String name) {}

    record Client(String base, String key, int tries, Duration timeout, HttpClient http) {
        /** Adds a pet, and returns it with its id. */
        Pet createPet(String name) throws Exception {
            var response = send("POST", base + "/pets", "{\"name\":\"" + name + "\",\"categoryId\":7}");
            return read(response).get(0);
        }

        /** Returns all pets. A Link leads from page to page. */
        List<Pet> listPets() throws Exception {
            var pets = new ArrayList<Pet>();
            var url = base + "/pets";
            while (true) {
                var response = send("GET", url, "");
                pets.addAll(read(response));
                var link = response.headers().firstValue("Link").orElse("");
                if (!link.endsWith(">; rel=\"next\"")) return pets;
                url = response.uri().resolve(link.substring(1, link.indexOf('>'))).toString();
            }
        }

        /** Reads pets. The JDK has no JSON library, so their names must not need a backslash. */
        static List<Pet> read(HttpResponse<String> response) throws IOException {
            var json = response.body().strip();
            if (!json.matches("\\{.*}|\\[.*]")) throw new IOException("not the whole JSON: " + json);
            return Pattern.compile("\"id\":(\\d+),\"name\":\"(.*?)\"").matcher(json).results()
                .map(match -> new Pet(Long.parseLong(match.group(1)), match.group(2)))
                .toList();
        }

        /** Sends a request until it succeeds, must not be repeated, or has no tries left. */
        HttpResponse<String> send(String method, String url, String body) throws Exception {
            var request = HttpRequest.newBuilder(URI.create(url))
                .header("Authorization", "Bearer " + key)
                .header("Content-Type", "application/json")
                .method(method, BodyPublishers.ofString(body))
                .build();
            for (int attempt = 1; ; attempt++) {
                boolean again = method.equals("GET") || REPEATS_LOST_POST;
                long wait = 50L << attempt;
                Exception error;
                var future = http.sendAsync(request, BodyHandlers.ofString());
                try {
                    // Up to Java 25, the timeout of HttpRequest.Builder is for the headers alone.
                    var response = future.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
                    int status = response.statusCode();
                    if (status < 300) return response;
                    error = new IOException(status + " " + response.body());
                    boolean refused = status == 429 || status == 503; // and not performed
                    again = refused || again && status >= 500;
                    var seconds = response.headers().firstValue("Retry-After").orElse("");
                    if (seconds.matches("\\d{1,9}")) wait = Math.max(wait, 1000 * Long.parseLong(seconds));
                } catch (ExecutionException | TimeoutException e) {
                    error = e;
                } finally {
                    future.cancel(true); // or a request that has timed out would go on
                }
                if (!again || attempt >= tries) throw error;
                Thread.sleep(wait);
            }
        }
    }

    // ----------------------------- here ends the client under test -----------------------------

    // The first request gets a 503, and the third a reset. The second, the fourth and the fifth add
    // their pets, but get no answer, a page of HTML, and half of the answer.
    void lostAnswer() throws Exception {
        try (var petstore = Petstore.start("lostAnswer")) {
            var client = petstore.client(0, "code=503,lost,rst,html,truncate&operation=createPet", 6, 5);
            var wants = REPEATS_LOST_POST
                ? List.of("success, stored pets: 4, statuses: [503, 0, 0, 502, 201, 201]")
                : List.of(
                    "error, stored pets: 1, statuses: [503, 0]",
                    "error, stored pets: 1, statuses: [503, 0, 0]",
                    "error, stored pets: 2, statuses: [503, 0, 0, 502]",
                    "error, stored pets: 3, statuses: [503, 0, 0, 502, 201]");
            for (var want : wants) {
                petstore.expect(errorOf(() -> client.createPet("Rex")), want);
            }
        }
    }

    // The status 201 and half of the body arrive, and no more. After 30 seconds, petstore closes
    // the connection, and the client gets an error, too. So only the time shows that it gave up.
    void stalledAnswer() throws Exception {
        try (var petstore = Petstore.start("stalledAnswer")) {
            var client = petstore.client(0, "code=stall&times=2", 2, 2);
            var begin = System.nanoTime();
            var error = errorOf(() -> client.createPet("Rex"));
            var seconds = (System.nanoTime() - begin) / 1_000_000_000;
            petstore.expect(error, REPEATS_LOST_POST
                ? "error, stored pets: 2, statuses: [201, 201]"
                : "error, stored pets: 1, statuses: [201]");
            if (seconds >= 10) {
                throw petstore.failure("createPet took " + seconds + " s, want 2 s for each try", error);
            }
        }
    }

    // The first answer is late. The client gives up, although its pet has been added. The journal
    // says whether it sent the request again.
    void lateAnswer() throws Exception {
        try (var petstore = Petstore.start("lateAnswer")) {
            var client = petstore.client(0, "answer-delay=10&times=1", 2, 2);
            var error = errorOf(() -> client.createPet("Rex"));
            var repeated = petstore.requests().stream().anyMatch(request -> request.group(1) != null);
            if (repeated != REPEATS_LOST_POST || (error == null) != REPEATS_LOST_POST) {
                throw petstore.failure("repeated: " + repeated + "; want a repetition, or else an error", error);
            }
        }
    }

    // Each answer asks the client to wait for two seconds, longer than any wait of its own. It
    // waits, tries again, and gives up after two tries.
    void obeysRetryAfter() throws Exception {
        try (var petstore = Petstore.start("obeysRetryAfter")) {
            var client = petstore.client(0, "code=503&times=2&retry-after=2", 2, 5);
            var error = errorOf(() -> client.createPet("Rex"));
            petstore.expect(error, "error, stored pets: 0, statuses: [503, 503]");
            var times = petstore.requests().stream().map(request -> Instant.parse(request.group(2))).toList();
            var gap = Duration.between(times.get(0), times.get(1)).toMillis();
            if (gap < 1900) throw petstore.failure("the second request came after " + gap + " ms, want 2000", error);
        }
    }

    // Pages have 20 pets. Half of the second page arrives, then half and no more for 30 seconds,
    // and then all of it. Instead of the third, the connection is closed.
    void listsAllPages() throws Exception {
        try (var petstore = Petstore.start("listsAllPages")) {
            var client = petstore.client(45, "code=ok,truncate,stall,ok,hangup&operation=listPets", 5, 2);
            var ids = new ArrayList<Long>();
            var error = errorOf(() -> client.listPets().forEach(pet -> ids.add(pet.id())));
            petstore.expect(error, "success, stored pets: 45, statuses: [200, 200, 200, 200, 0, 200]");
            if (!ids.equals(LongStream.rangeClosed(1, 45).boxed().toList())) {
                throw petstore.failure("listPets returned the ids " + ids + ", want 1 to 45", error);
            }
        }
    }

    public static void main(String[] args) {
        var tests = new PetstoreTest();
        var passed = passes("lostAnswer", tests::lostAnswer)
            & passes("stalledAnswer", tests::stalledAnswer)
            & passes("lateAnswer", tests::lateAnswer)
            & passes("obeysRetryAfter", tests::obeysRetryAfter)
            & passes("listsAllPages", tests::listsAllPages);
        System.exit(passed ? 0 : 1);
    }

    static boolean passes(String name, Action test) {
        try {
            test.run();
            System.out.println("ok - " + name);
            return true;
        } catch (Exception | AssertionError e) {
            System.out.println("FAILED - " + name);
            e.printStackTrace(System.out);
            return false;
        }
    }

    interface Action {
        void run() throws Exception;
    }

    /** Runs an action, and returns the exception that it throws, or null. */
    static Exception errorOf(Action action) {
        try {
            action.run();
            return null;
        } catch (Exception e) {
            return e;
        }
    }

    /** The petstore of a test, with the base URL of its API, such as http://127.0.0.1:54321/v1. */
    record Petstore(String test, Process process, String base) implements AutoCloseable {
        /** The path of the binary. Windows finds petstore.exe by itself. */
        static final String PATH = "./petstore";

        /** The key of the petstore of PETSTORE_URL, or of those that the tests start. */
        static final String KEY = Objects.requireNonNullElse(System.getenv("PETSTORE_API_KEY"), "test");

        static final HttpClient HTTP = HttpClient.newHttpClient();

        /** Returns the petstore of PETSTORE_URL or, if that is not set, one for this test. */
        static Petstore start(String test) throws IOException {
            var base = System.getenv("PETSTORE_URL");
            if (base != null && !base.isEmpty()) return new Petstore(test, null, base);
            var builder = new ProcessBuilder(PATH, "-addr", "127.0.0.1:0", "-stdin");
            builder.environment().put("PETSTORE_API_KEY", KEY);
            builder.redirectError(ProcessBuilder.Redirect.INHERIT); // which says why it cannot start
            Process process;
            try {
                process = builder.start();
            } catch (IOException e) {
                throw new AssertionError(e.getMessage() + ": build petstore first, or change Petstore.PATH", e);
            }
            base = process.inputReader().readLine();
            if (base == null) throw new AssertionError("petstore did not start; standard error may say why");
            return new Petstore(test, process, base);
        }

        /** Stops petstore by closing its standard input, as happens when this process is killed. */
        @Override
        public void close() throws IOException {
            if (process != null) process.getOutputStream().close();
        }

        /**
         * Makes a client, and lets it add a pet, as some HTTP libraries repeat a request by
         * themselves if its connection has carried another. Then it sets the pets and the fault.
         */
        Client client(int pets, String fault, int tries, int seconds) throws Exception {
            var reset = "/__admin/reset?test=" + test; // so that the journal names the test
            send("POST", reset, "[]");
            var client = newClient(base, KEY, tries, Duration.ofSeconds(seconds));
            var ids = new ArrayList<Long>();
            var error = errorOf(() -> ids.add(client.createPet("Ida").id()));
            if (!ids.equals(List.of(1L))) {
                throw failure("without a fault, createPet returned the ids " + ids + ", want 1", error);
            }
            var seed = Collections.nCopies(pets, "{\"name\":\"Rex\",\"categoryId\":7}");
            send("POST", reset, "[" + String.join(",", seed) + "]");
            send("PUT", "/__admin/fault?" + fault, "");
            return client;
        }

        // Of a request, which has a line in the journal. Within strings, quotes have a backslash.
        // The groups: repeats, time, method, url, body, fault, status.
        static final Pattern REQUEST = Pattern.compile("\"arrived\":\\d+,(\"repeats\":\\d+,)?"
            + ".*?\"time\":\"(.*?)\".*?\"method\":\"(.*?)\".*?"
            + "\"url\":\"(.*?)\".*?\"body\":\"(.*?)\",\"(?:fault\":(\\{.*?}),\")?status\":(\\d+)");

        /**
         * Compares what the client reported, how many pets petstore has, and the statuses of the
         * requests, where 0 is no answer.
         */
        void expect(Exception error, String want) throws Exception {
            var statuses = requests().stream().map(request -> request.group(7)).toList();
            var pets = send("GET", "/__admin/pets?limit=100", "").split("\"id\":").length - 1;
            var got = (error == null ? "success" : "error") + ", stored pets: " + pets + ", statuses: " + statuses;
            if (!got.equals(want)) throw failure("got " + got + "; want " + want, error);
        }

        /** Returns the requests of the client, once those that it gave up have ended. */
        List<MatchResult> requests() throws Exception {
            return REQUEST.matcher(send("GET", "/__admin/requests?waiting=0", "")).results().toList();
        }

        /** Returns an error that shows what the client reported and sent, and a line that shows all. */
        AssertionError failure(String message, Exception error) throws Exception {
            message += "; REPEATS_LOST_POST is " + REPEATS_LOST_POST + "\nthe error: " + error;
            for (var request : requests()) {
                message += "\n" + request.group(3) + " " + request.group(4) + " " + request.group(5)
                    + ": " + request.group(7) + " fault: " + request.group(6);
            }
            message += "\nwith PETSTORE_URL, all of it: curl -sSH \"Authorization: Bearer $PETSTORE_API_KEY\" "
                + "\"${PETSTORE_URL%v1}__admin/requests?history=true\" | grep -F '\"test\":\"" + test + "\"'";
            return new AssertionError(message, error);
        }

        /** Sends a request to /__admin. */
        String send(String method, String path, String body) throws Exception {
            var request = HttpRequest.newBuilder(URI.create(base).resolve(path))
                .timeout(Duration.ofSeconds(40)) // as petstore waits for up to 30
                .header("Authorization", "Bearer " + KEY)
                .method(method, BodyPublishers.ofString(body))
                .build();
            var response = HTTP.send(request, BodyHandlers.ofString());
            var answer = response.body();
            if (response.statusCode() >= 400) throw new IOException(method + " " + path + ": " + answer);
            return answer;
        }
    }
}
